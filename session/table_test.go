package session

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

func password(b byte) (p [proto.PasswordSize]byte) {
	for i := range p {
		p[i] = b
	}
	return p
}

func TestCreateNeverReusesAnID(t *testing.T) {
	t.Parallel()
	tab := NewTable()
	seen := map[int64]bool{}
	for i := range 1000 {
		s := tab.Create(uint8(i%3+1), 4000, password(1))
		if seen[s.ID] || s.ID == 0 {
			t.Fatalf("session %d got id 0x%x again", i, s.ID)
		}
		if got := uint8(uint64(s.ID) >> 56); got != uint8(i%3+1) || s.Server != got {
			t.Fatalf("id 0x%x of server %d", s.ID, i%3+1)
		}
		seen[s.ID] = true
		if i%2 == 0 {
			tab.Remove(s.ID)
		}
		if i == 500 { // a restart from a snapshot
			restored := NewTable()
			if _, err := restored.DecodeFrom(tab.AppendTo(nil)); err != nil {
				t.Fatal(err)
			}
			tab = restored
		}
	}
}

func TestCreateStepsOverImportedIDs(t *testing.T) {
	t.Parallel()
	tab := NewTable()
	tab.rows[1<<56|1] = Session{ID: 1<<56 | 1}
	tab.rows[1<<56|2] = Session{ID: 1<<56 | 2}
	if s := tab.Create(1, 1, password(0)); s.ID != 1<<56|3 {
		t.Fatalf("got id 0x%x", s.ID)
	}
	tab.last = 1<<counterBits - 1
	if s := tab.Create(1, 1, password(0)); uint64(s.ID)&(1<<counterBits-1) != 4 {
		t.Fatalf("after the counter's end: id 0x%x", s.ID)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	tab := NewTable()
	s := tab.Create(1, 4000, password(7))
	if s.Gen != 1 || tab.Check(s.ID, 1) != proto.Ok {
		t.Fatalf("new session: %+v", s)
	}
	wrong := password(8)
	for name, pw := range map[string][]byte{"wrong": wrong[:], "short": s.Password[:15], "long": append(slices.Clone(s.Password[:]), 7), "nil": nil} {
		if _, ok := tab.Attach(s.ID, pw, 1, 2); ok {
			t.Errorf("attached with a %s password", name)
		}
	}
	if got, _ := tab.Get(s.ID); got != s {
		t.Fatalf("a refused attach changed the session to %+v", got)
	}
	if _, ok := tab.Attach(s.ID+1, s.Password[:], 1, 2); ok {
		t.Error("attached to a session that does not exist")
	}
	again, ok := tab.Attach(s.ID, s.Password[:], 6000, 2)
	want := Session{ID: s.ID, Timeout: 6000, Password: s.Password, Gen: 2, Server: 2}
	if !ok || again != want {
		t.Fatalf("Attach = %+v, %v, want %+v", again, ok, want)
	}
	if tab.Check(s.ID, 1) != proto.ErrSessionMoved || tab.Check(s.ID, 2) != proto.Ok || tab.Check(s.ID, 3) != proto.ErrSessionMoved {
		t.Error("Check does not tell the generations apart")
	}
	if !tab.Remove(s.ID) || tab.Remove(s.ID) || tab.Check(s.ID, 2) != proto.ErrSessionExpired {
		t.Error("a removed session is still there")
	}
}

func TestEncoding(t *testing.T) {
	t.Parallel()
	tab := NewTable()
	for i := range 20 {
		tab.Create(uint8(20-i), int32(i), password(byte(i)))
	}
	clone := tab.Clone()
	enc := tab.AppendTo([]byte("head"))[4:]
	tab.Clear()
	if tab.Len() != 0 || clone.Len() != 20 {
		t.Fatalf("Clear left %d, the clone has %d", tab.Len(), clone.Len())
	}
	var got Table
	rest, err := got.DecodeFrom(append(bytes.Clone(enc), "tail"...))
	if err != nil || string(rest) != "tail" || !bytes.Equal(got.AppendTo(nil), enc) || !bytes.Equal(clone.AppendTo(nil), enc) {
		t.Fatalf("decoded %d sessions, rest %q, error %v", got.Len(), rest, err)
	}
	for s := range got.All {
		if s.Server != 1 {
			t.Fatalf("All does not start with the smallest id: %+v", s)
		}
		break
	}
	for n := range enc {
		if _, err := got.DecodeFrom(enc[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(enc))
		}
	}
	if !bytes.Equal(got.AppendTo(nil), enc) {
		t.Error("a refused encoding changed the table")
	}
	twice := slices.Concat(enc[:12], enc[12:12+rowSize], enc[12:12+rowSize])
	twice[11] = 2
	if _, err := got.DecodeFrom(twice); err == nil {
		t.Error("an id that stands twice was accepted")
	}
	big := bytes.Clone(enc)
	big[0] = 1
	if _, err := got.DecodeFrom(big); err == nil {
		t.Error("a counter beyond its bits was accepted")
	}
}

func FuzzDecode(f *testing.F) {
	tab := NewTable()
	f.Add(tab.AppendTo(nil))
	tab.Create(1, 4000, password(1))
	f.Add(tab.AppendTo(nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		tab := NewTable()
		rest, err := tab.DecodeFrom(b)
		if err != nil {
			return
		}
		again := NewTable()
		if _, err := again.DecodeFrom(tab.AppendTo(nil)); err != nil || again.Len() != tab.Len() {
			t.Fatalf("%d sessions became %d: %v", tab.Len(), again.Len(), err)
		}
		if len(rest) > len(b) {
			t.Fatal("more left than there was")
		}
	})
}

func TestSkip(t *testing.T) {
	t.Parallel()
	tab := NewTable()
	tab.Skip(0xff00_0000_0000_0500)
	tab.Skip(7)
	if s := tab.Create(2, 4000, [16]byte{}); s.ID != 0x0200_0000_0000_0501 {
		t.Errorf("%#x", s.ID)
	}
}
