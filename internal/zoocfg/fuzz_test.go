package zoocfg

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

func hasBracket(s Server) bool {
	for _, a := range s.Addrs {
		if strings.ContainsAny(a.Host, "[]") {
			return true
		}
	}
	return strings.ContainsAny(s.ClientHost, "[]")
}

// FuzzParseText checks that any text results in an error that names the file, or in a
// configuration that passes its own checks again unchanged.
func FuzzParseText(f *testing.F) {
	files, _ := filepath.Glob("testdata/cases/*.cfg")
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(f)
		f.Add(string(text), "1\n")
	}
	f.Fuzz(func(t *testing.T, text, myid string) {
		read := func(path string) ([]byte, error) {
			switch {
			case filepath.Base(path) == "myid":
				return []byte(myid), nil
			case strings.Contains(path, "dyn"):
				return []byte(text), nil
			}
			return noFiles(path)
		}
		c, err := ParseText("zoo.cfg", text, WithReadFile(read))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.File == "" || e.Msg == "" {
				t.Fatalf("poor error: %#v", err)
			}
			return
		}
		if c.DataDir == "" || c.TickTime <= 0 || c.MinSessionTimeout > c.MaxSessionTimeout || c.AutopurgeRetain < minRetain {
			t.Fatalf("accepted %+v", c)
		}
		again := c.Clone()
		if err := again.Validate(); err != nil {
			t.Fatalf("second validation: %v", err)
		}
		c.readFile, again.readFile = nil, nil
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("validation changed\n%+v\nto\n%+v", c, again)
		}
	})
}
