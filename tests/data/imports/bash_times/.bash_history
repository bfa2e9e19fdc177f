#1773651600
make test
#1773651660
for i in 1 2
do echo $i
done
