package zkfiles

import (
	"bytes"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tree"
)

// seeds adds the recorded files with the prefix.
func seeds(f *testing.F, prefix string) {
	for release := range releases() {
		d := must.Get(recorded(f, release).inside())(f)
		list := must.Get(d.files(prefix))(f)
		for _, file := range list {
			b := must.Get(fs.ReadFile(d.FS, file.name))(f)
			f.Add(b)
		}
	}
}

// FuzzSnapshot checks that any input results in an error, or in a consistent tree
// that is unchanged after we write and read it.
func FuzzSnapshot(f *testing.F) {
	seeds(f, snapshotPrefix)
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, table := tree.New(), session.NewTable()
		if _, err := ReadSnapshot("snapshot.5", bytes.NewReader(b), 0, Limits{}, tr, table); err != nil {
			return
		}
		must.Do(t, tr.Check())
		back, sessions := tree.New(), session.NewTable()
		must.Get(ReadSnapshot("snapshot.0", bytes.NewReader(written(t, tr, table, None)), 0, Limits{}, back, sessions))(t)
		if got, want := dump(t, back, sessions), dump(t, tr, table); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}

// FuzzLog checks that any input results in an error or in transactions that can be
// applied.
func FuzzLog(f *testing.F) {
	seeds(f, logPrefix)
	f.Fuzz(func(t *testing.T, b []byte) {
		state, r, err := Load(Source{Data: Dir{fstest.MapFS{"log.1": {Data: b}}, "d"}, AcceptGaps: true, IgnoreDigest: true})
		if err != nil {
			return
		}
		if r.Transactions > len(b)/recordHeader {
			t.Errorf("%d transactions in %d bytes", r.Transactions, len(b))
		}
		tr := tree.New()
		if err := state.Fill(tr, session.NewTable()); err != nil {
			return
		}
		must.Do(t, tr.Check())
	})
}

// FuzzTransaction is FuzzLog without the checksum.
func FuzzTransaction(f *testing.F) {
	for _, p := range history() {
		f.Add(p)
	}
	f.Add(multi(1, 5, 2, []byte("\x00\x00\x00\x02/a")))
	f.Fuzz(func(_ *testing.T, b []byte) {
		tx, err := DecodeTxn(b)
		if err != nil {
			return
		}
		s := NewState(0)
		if err := s.Apply(tx); err == nil {
			_ = s.Fill(tree.New(), session.NewTable())
		}
	})
}
