#!/bin/sh
# Make the folder `secrets` beside compose.yaml: passwords by chance, and with them the URLs of both logins. Put
# certificate.pem and key.pem there too. Run it as root, once: the image's user is to read what others may not.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir secrets
cd secrets
for login in administrator owner serving; do
    python3 -c 'import secrets; print(secrets.token_urlsafe(32), end="")' >${login}_password
done
echo "postgresql://mnemosyne_owner:$(cat owner_password)@database/memory" >owner_url
echo "postgresql://mnemosyne:$(cat serving_password)@database/memory" >serving_url
# The database's image reads the passwords as root.
chown 10001:10001 owner_url serving_url
