package raftfsm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// FuzzQuestion decodes questions between servers, and checks that encoding and decoding
// them again gives the same question. It also checks admit and redact.
func FuzzQuestion(f *testing.F) {
	for _, q := range []question{
		{Probe: &probe{ID: 2, Disk: 5, Phase: phaseBound, Bound: &founding{Disks: map[uint64]uint64{2: 5}}, Promised: ballot{1, 2, 5}, Join: true, Token: 9}},
		{Admit: &admission{ServerID: "2.5", Token: 9}},
		{Reconfig: &driveRequest{Body: []byte("x")}},
	} {
		b, err := json.Marshal(&q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q question
		in := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		if readMessage(bytes.NewReader(in), &q) != nil {
			return
		}
		var out bytes.Buffer
		var again question
		if err := writeMessage(&out, &q); err != nil {
			t.Fatal(err)
		}
		if err := readMessage(&out, &again); err != nil {
			t.Fatal(err)
		}
		first, _ := json.Marshal(&q)
		second, _ := json.Marshal(&again)
		if !bytes.Equal(first, second) {
			t.Fatalf("%s became %s", first, second)
		}
		if q.Admit != nil {
			form := &formation{self: membership.Member{ID: 2}, store: &seatStore{seat: seat{Disk: 5}}, changed: make(chan struct{}, 1), token: 9}
			if err := form.admit(q.Admit); (err == nil) != (form.granted != nil) || err == nil && q.Admit.Token != 9 {
				t.Fatalf("%+v: %v", q.Admit, err)
			}
		}
		if q.Probe != nil {
			p := *q.Probe
			if p.redact(); p.Bound != nil || p.Disk != 0 || p.List != "" || p.Token != 0 || !reflect.DeepEqual(p.Promised, ballot{}) {
				t.Fatalf("%+v is left for strangers", p)
			}
		}
	})
}
