package schemes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// The identities that go into the log with a command should be bounded, however many a
// client has proved.
func TestIdentitiesWithACommandAreBounded(t *testing.T) {
	t.Parallel()
	var ids []proto.ID
	for i := range MaxIdentities - 2 {
		ids = append(ids, proto.ID{Scheme: "digest", ID: fmt.Sprintf("%0200d", i)})
	}
	ids = append(ids, proto.ID{Scheme: "ip", ID: "10.0.0.1"}, proto.ID{Scheme: Super, ID: strings.Repeat("CN", 1000)})
	for _, n := range []int{0, 1, 2, 3, 100, len(ids)} {
		var s Set
		s.Replace(ids[len(ids)-n:])
		short, prints := s.Carried()
		got := Bytes(short) + len(prints)*len(tree.Fingerprint{})
		if most := MaxCarriedBytes + MaxIdentities*len(tree.Fingerprint{}); got > most {
			t.Errorf("%d identities need %d bytes, more than %d", n, got, most)
		}
		if len(short)+len(prints) != n {
			t.Errorf("%d identities have become %d and %d fingerprints", n, len(short), len(prints))
		}
	}
}
