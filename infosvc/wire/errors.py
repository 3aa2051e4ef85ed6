"""Everything that can go wrong between a program and the information service.

InfoError
├── Unreachable           no answer at all: not started, wrong address, too slow
├── InvalidInput          422
│   └── Malformed         400, the body is not a JSON object at all
├── Unauthorized          401
│   └── Revoked           401, the token was known once: nothing it did may go on
├── Forbidden             403
├── NotFound              404
├── Conflict              409
├── LengthRequired        411
├── PreconditionFailed    412
├── TooLarge              413
├── TooManyRequests       429
└── NotReady              503, and any other failure of the service itself
"""


class ErrorWithRemedy(Exception):
    """An error that is shown to people: `message` says what happened, with which value, and `remedy` what to do.

    As text it is one sentence of both.

    >>> str(ErrorWithRemedy("port 8400 is in use", "end that program, or choose another port"))
    'port 8400 is in use: end that program, or choose another port'
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


class InfoError(ErrorWithRemedy):
    """Base of all errors of the information service; `code`, `status`, `field` and the text go over the wire.

    An error that came over the wire has its whole text in `message`.
    """

    code = "error"
    status = 500

    def __init__(self, message: str, field: str | None = None, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.field = field


class Unreachable(InfoError):
    """The service gave no answer."""

    code = "unreachable"
    status = 503


class InvalidInput(InfoError):
    """A value was refused; `field` names it."""

    code = "invalid_input"
    status = 422


class Malformed(InvalidInput):
    """The body could not even be read."""

    status = 400


class Unauthorized(InfoError):
    """The call carried no token, or one the service does not know."""

    code = "unauthorized"
    status = 401


class Revoked(Unauthorized):
    """The token was taken back, or its node was forgotten."""

    code = "revoked"


class Forbidden(InfoError):
    """The token is known but may not do this."""

    code = "forbidden"
    status = 403


class NotFound(InfoError):
    """No producer, node, slot or value has this name."""

    code = "not_found"
    status = 404


class Conflict(InfoError):
    """The request contradicts what is stored."""

    code = "conflict"
    status = 409


class PreconditionFailed(InfoError):
    """`If-Match` named a version that is no longer the current one."""

    code = "precondition_failed"
    status = 412


class LengthRequired(InfoError):
    """The body came without saying how long it is."""

    code = "length_required"
    status = 411


class TooLarge(InfoError):
    """The body is larger than the service takes."""

    code = "too_large"
    status = 413


class TooManyRequests(InfoError):
    """The caller is over its rate."""

    code = "too_many_requests"
    status = 429


class NotReady(InfoError):
    """The service is up but cannot answer now, for example because its database is away."""

    code = "not_ready"
    status = 503


AWAY = (Unreachable, NotReady, TooManyRequests)
"""What passes by itself: a service that is away or busy. Anything else, such as a token that was revoked, stays."""

BY_STATUS: dict[int, type[InfoError]] = {
    400: Malformed,
    **{
        kind.status: kind
        for kind in (
            InvalidInput,
            Unauthorized,
            Forbidden,
            NotFound,
            Conflict,
            LengthRequired,
            PreconditionFailed,
            TooLarge,
            TooManyRequests,
            NotReady,
        )
    },
}
