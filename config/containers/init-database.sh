#!/bin/sh
# Run once by the image of PostgreSQL, when its folder of data is empty: two logins, a database that others may not
# connect to, and the role in which requests work. docs/owners.md says what each is for.
set -eu
psql --set=ON_ERROR_STOP=1 --quiet --no-psqlrc \
    --set=owner="$(cat /run/secrets/owner_password)" --set=serving="$(cat /run/secrets/serving_password)" <<'SQL'
CREATE ROLE mnemosyne_owner LOGIN PASSWORD :'owner';
CREATE ROLE mnemosyne LOGIN PASSWORD :'serving';
CREATE ROLE mnemosyned_request_memory NOLOGIN;
GRANT mnemosyned_request_memory TO mnemosyne_owner, mnemosyne;
CREATE DATABASE memory OWNER mnemosyne_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE memory FROM PUBLIC;
GRANT CONNECT ON DATABASE memory TO mnemosyne;
SQL
