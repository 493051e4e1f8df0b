package chaos

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// A connection between servers begins with
//
//	magic[8] version u16 kind u8 code u8 from[32]
//
// The first byte of from is the length of the server's Raft ID, which follows:
// the server's number and, if its disk was wiped, a dot and the number of the
// disk.
const (
	helloMagic = "zkgopeer"
	helloFrom  = len(helloMagic) + 4
	helloSize  = helloFrom + 32
)

var errHello = errors.New("this is not how a connection between servers begins")

// whoDials reads which server has dialled a quorum port.
func whoDials(r io.Reader) (string, []byte, error) {
	b := make([]byte, helloSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", nil, err
	}
	n := int(b[helloFrom])
	if string(b[:len(helloMagic)]) != helloMagic || n == 0 || helloFrom+1+n > len(b) {
		return "", nil, errHello
	}
	server, _, _ := strings.Cut(string(b[helloFrom+1:helloFrom+1+n]), ".")
	return "s" + server, b, nil
}

// serverName and clientName name the ends of the network.
func serverName(id int) string { return fmt.Sprintf("s%d", id) }
func clientName(id int) string { return fmt.Sprintf("c%d", id) }
