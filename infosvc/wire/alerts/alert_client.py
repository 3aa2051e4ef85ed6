"""The calls about alerts. Standard library only."""

from __future__ import annotations

from infosvc.wire.alerts.alert_records import Alert, AlertBody, AlertTest
from infosvc.wire.service_calls import ServiceCalls, segment


class AlertClient(ServiceCalls):
    """Adds alerts and asks what they are on for, as the same caller as a client and over its connections."""

    def __init__(self, client: ServiceCalls) -> None:
        self.url, self._connections, self._base = client.url, client._connections, client._base
        self._token, self._retries = client._token, client._retries

    def add(self, condition: str, seconds: float = 0.0, notify: str | None = None) -> Alert:
        """Add an alert, with the web address that is told of it; Conflict when there is one with both."""
        body = AlertBody(condition, seconds, notify).to_json()
        return self._read(self._call("POST", "/alerts", body, repeatable=False), Alert.from_json)

    def all(self) -> list[Alert]:
        """All alerts, the oldest first."""
        return self._ask("/alerts", lambda reply: [Alert.from_json(row) for row in reply["alerts"]])

    def find(self, alert_id: str) -> Alert:
        """One alert; NotFound when no alert has this id."""
        return self._ask(f"/alerts/{segment(alert_id)}", Alert.from_json)

    def remove(self, alert_id: str) -> None:
        """Remove an alert, with what it still had to tell."""
        self._delete(f"/alerts/{segment(alert_id)}")

    def test(self, alert_id: str) -> AlertTest:
        """Send a message to the alert's address now, once."""
        reply = self._call("POST", f"/alerts/{segment(alert_id)}/test", repeatable=False)
        return self._read(reply, AlertTest.from_json)
