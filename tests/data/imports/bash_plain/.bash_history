make test
ls
make test
