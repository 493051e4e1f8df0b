package ensemble

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/exchange"
)

// TestFailedChangeRests: a change that Raft refuses is retried after longer and longer
// pauses, and logged once for each reason.
func TestFailedChangeRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		var b setback
		tries := 0
		for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(reconcileEvery) {
			if !b.rests("x") {
				tries++
				b.failed(log, "x", raft.ErrLeadershipLost)
			}
		}
		if n := strings.Count(text.String(), "could not be changed"); n != 1 || tries > 80 {
			t.Errorf("%d tries and %d lines in ten minutes", tries, n)
		}
		b.failed(log, "x", raft.ErrNotLeader)
		if n := strings.Count(text.String(), "could not be changed"); n != 2 {
			t.Errorf("another reason: %d lines", n)
		}
	})
}

// FuzzChangeQuestion decodes reconfigs from other servers, and checks that encoding and
// decoding them again gives the same question.
func FuzzChangeQuestion(f *testing.F) {
	f.Add([]byte(`{"reconfig":{"ids":[{"Scheme":"ip","ID":"1.2.3.4"}],"body":"eA=="}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var q, again ChangeQuestion
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
