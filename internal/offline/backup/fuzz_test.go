package backup

import (
	"bytes"
	"io"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// FuzzOpen checks that any file is either rejected, or a backup that reads the same
// after it is written again.
func FuzzOpen(f *testing.F) {
	for _, snapshot := range []string{"", "a snapshot"} {
		var b bytes.Buffer
		must.Get(Write(&b, Header{Zxid: "0x1", Source: "http://a"}, bytes.NewReader([]byte(snapshot))))(f)
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(b []byte) (h *Header, content []byte, err error) {
			h, err = open(bytes.NewReader(b), func(_ *Header, data io.Reader) error {
				content, err = io.ReadAll(io.LimitReader(data, 1<<20))
				return err
			})
			return h, content, err
		}
		h, content, err := read(b)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if _, err := Write(&again, *h, bytes.NewReader(content)); err != nil {
			return // JSON can't represent the time
		}
		if _, got, err := read(again.Bytes()); err != nil || len(content) < 1<<20 && !bytes.Equal(got, content) {
			t.Errorf("%q instead of %q: %v", got, content, err)
		}
	})
}
