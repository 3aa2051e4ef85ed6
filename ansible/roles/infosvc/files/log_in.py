"""Logs in to a database and prints by which account: log_in.py URL PASSWORD_FILE; or says what refused it."""

import sys
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from infosvc.state.database import parse_url

url = parse_url(sys.argv[1], Path(sys.argv[2]).read_text().rstrip("\n"))
try:
    with create_engine(url, connect_args={"connect_timeout": 10}).connect() as connection:
        print(connection.scalar(text("SELECT CURRENT_USER()")))
except SQLAlchemyError as error:
    said = " ".join(str(getattr(error, "orig", None) or error).split())
    sys.exit(f"{url.render_as_string()} cannot be opened ({said})")
