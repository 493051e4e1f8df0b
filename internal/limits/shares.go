package limits

import (
	"cmp"
	"slices"
)

// maxExcess is how many shares are given up at a time.
const maxExcess = 256

// Share is one connection's share of a resource. H is the server's handle of the connection.
type Share[H any] struct {
	Handle H
	Host   string // the client's address
	Bytes  int64
}

// Excess returns the shares to give up, at most 256, so that the others have at most most
// bytes. It starts with the address that has the most bytes in total, and there with the
// largest connection: a client with many connections gets no more memory than a client with
// a single one. If two addresses have the same total, the first in alphabetical order gives
// up.
func Excess[H any](shares []Share[H], most int64) (excess []Share[H]) {
	total := int64(0)
	hosts, sums := make(map[string][]Share[H]), make(map[string]int64)
	for _, one := range shares {
		hosts[one.Host] = append(hosts[one.Host], one)
		sums[one.Host] += one.Bytes
		total += one.Bytes
	}
	if total <= most {
		return nil
	}
	for _, of := range hosts {
		slices.SortFunc(of, func(a, b Share[H]) int { return cmp.Compare(b.Bytes, a.Bytes) })
	}
	for total > most && len(excess) < maxExcess {
		largest, sum := "", int64(0)
		for host, n := range sums {
			if n > sum || n == sum && host < largest {
				largest, sum = host, n
			}
		}
		one := hosts[largest][0]
		hosts[largest] = hosts[largest][1:]
		sums[largest] -= one.Bytes
		total -= one.Bytes
		excess = append(excess, one)
	}
	return excess
}
