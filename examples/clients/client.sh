#!/bin/sh
# Writes a value and reads it back: client.sh URL TOKEN_FILE NAME NODE VALUE. NAME must be registered; VALUE is one line.
# An https service is trusted by the authority in the file that NODEWISE_CA_FILE names.
set -eu
[ $# = 5 ] || { echo "usage: client.sh URL TOKEN_FILE NAME NODE VALUE" >&2 && exit 2; }
token_file=$2
cell=$1/api/v1/data/$3/$4

call() { # call WORDS...: the token goes through a pipe, since everybody may read a command line
    printf 'Authorization: Bearer %s\n' "$(cat "$token_file")" |
        curl --silent --show-error --fail-with-body --header @- \
            ${NODEWISE_CA_FILE:+--cacert "$NODEWISE_CA_FILE"} "$@"
}

value=$(printf '%s' "$5" | sed 's/[\\"]/\\&/g') # as JSON writes it
call --request PUT --header 'Content-Type: application/json' --data "{\"data_value\": \"$value\"}" "$cell" >&2
call "$cell"
