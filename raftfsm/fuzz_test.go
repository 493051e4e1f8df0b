package raftfsm

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
)

// FuzzChangeQuestion decodes reconfigs from other servers, and checks that encoding and
// decoding them again gives the same question.
func FuzzChangeQuestion(f *testing.F) {
	f.Add([]byte(`{"reconfig":{"ids":[{"Scheme":"ip","ID":"1.2.3.4"}],"body":"eA=="}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var q, again changeQuestion
		in := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		if exchange.Read(bytes.NewReader(in), &q) != nil {
			return
		}
		var out bytes.Buffer
		if err := exchange.Write(&out, &q); err != nil {
			t.Fatal(err)
		}
		if err := exchange.Read(&out, &again); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(q, again) {
			t.Fatalf("%+v became %+v", q, again)
		}
	})
}
