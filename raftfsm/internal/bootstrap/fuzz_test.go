package bootstrap

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// FuzzQuestion decodes questions between servers, and checks that encoding and decoding
// them again gives the same question. It also checks admit and redact.
func FuzzQuestion(f *testing.F) {
	for _, q := range []Question{
		{Probe: &Probe{ID: 2, Disk: 5, Phase: PhaseBound, Bound: &Plan{Disks: map[uint64]uint64{2: 5}}, Promised: Ballot{1, 2, 5}, Join: true, Token: 9}},
		{Admit: &Admission{ServerID: "2.5", Token: 9}},
	} {
		b, err := json.Marshal(&q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q Question
		in := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		if exchange.Read(bytes.NewReader(in), &q) != nil {
			return
		}
		var out bytes.Buffer
		var again Question
		if err := exchange.Write(&out, &q); err != nil {
			t.Fatal(err)
		}
		if err := exchange.Read(&out, &again); err != nil {
			t.Fatal(err)
		}
		first, _ := json.Marshal(&q)
		second, _ := json.Marshal(&again)
		if !bytes.Equal(first, second) {
			t.Fatalf("%s became %s", first, second)
		}
		if q.Admit != nil {
			form := New(Env{Self: membership.Member{ID: 2}}, &Store{state: State{Disk: 5}}, "")
			form.token = 9
			if err := form.admit(q.Admit); (err == nil) != (form.granted != nil) || err == nil && q.Admit.Token != 9 {
				t.Fatalf("%+v: %v", q.Admit, err)
			}
		}
		if q.Probe != nil {
			p := *q.Probe
			if p.redact(); p.Bound != nil || p.Disk != 0 || p.List != "" || p.Token != 0 || !reflect.DeepEqual(p.Promised, Ballot{}) {
				t.Fatalf("%+v is left for strangers", p)
			}
		}
	})
}
