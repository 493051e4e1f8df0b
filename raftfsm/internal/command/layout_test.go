package command

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// TestLayout pins the encoding, because later versions read the log.
func TestLayout(t *testing.T) {
	t.Parallel()
	s := LeaderStart{Server: 3, Flags: FlagStandalone | FlagConfig, Incarnation: 0x1122334455667788, Time: 0x99, Policy: 5, Level: 1, Cluster: ClusterID{0xc1, 15: 0xc2}, Config: []byte("cfg")}
	golden(t, "leaderStart", s.Append(nil), "0101"+"03"+"03"+"1122334455667788"+"0000000000000099"+"00000005"+"00000001"+"c10000000000000000000000000000c2"+"00000003"+"636667")
	var back LeaderStart
	if err := back.Decode(s.Append(nil)); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("%+v, %v", back, err)
	}
	h := BatchHeader{Incarnation: 0x1122334455667788, Seq: 2, Time: 3, Policy: 4, Check: Check{5, 6}}
	golden(t, "batch", h.Append(nil), "0102"+"1122334455667788"+"0000000000000002"+"0000000000000003"+"00000004"+"0000000000000005"+"0000000000000006")
	var hb BatchHeader
	if runs, err := hb.Decode(append(h.Append(nil), 7)); err != nil || hb != h || !bytes.Equal(runs, []byte{7}) {
		t.Errorf("%+v, %v, %v", hb, runs, err)
	}
	c := Command{Kind: KindRequest, Session: 1, Gen: 2, IDs: []proto.ID{{Scheme: "s", ID: "i"}}, Op: -11, Body: []byte{8}}
	golden(t, "run", runOf(c), "02"+"0000000000000063"+"0000000000000001"+"00000001"+"00000028"+
		"01"+"0000000000000001"+"0000000000000002"+"fffffff5"+"00000001"+"00000001"+"73"+"00000001"+"69"+"00000001"+"08")
	c = Command{Kind: KindRequest, Session: 1, Gen: 2, Prints: []tree.Fingerprint{{1, 15: 2}}, Op: 5}
	golden(t, "fingerprints", c.Append(nil), "01"+"0000000000000001"+"0000000000000002"+"00000005"+"00010000"+"01000000000000000000000000000002"+"ffffffff")
	c = Command{Kind: KindAttach, Session: 1, Timeout: 4000, Password: [16]byte{15: 1}}
	golden(t, "attach", c.Append(nil), "02"+"0000000000000001"+"0000000000000000"+"00000000"+"00000000"+"00000014"+"00000fa0"+"00000000000000000000000000000001")
}

func golden(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if hex.EncodeToString(got) != want {
		t.Errorf("%s is\n%x, want\n%s", what, got, want)
	}
}

func TestEntryKind(t *testing.T) {
	t.Parallel()
	for _, b := range [][]byte{nil, {1}, {2, 1}, {0, 1}, {1, 0}, {1, 3}} {
		if k, err := EntryKind(b); err == nil {
			t.Errorf("%v is of kind %d", b, k)
		}
	}
}

// runOf returns a run of server 2 that consists of a single command.
func runOf(c Command) []byte {
	b := c.Append(make([]byte, RunHeaderSize))
	h := RunHeader{Server: 2, Nonce: 99, First: 1, Count: 1, Size: uint32(len(b) - RunHeaderSize)}
	h.Put(b)
	return b
}
