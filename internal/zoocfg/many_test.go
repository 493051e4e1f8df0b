package zoocfg

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// A file of another kind has thousands of unknown keys: each should cost little, and we should list
// only a few.
func TestManyUnknownKeys(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("dataDir=/var/lib/zkgo\nclientPort=2181\n")
	for i := range 200_000 {
		fmt.Fprintf(&b, "key.number.%d=1\n", i)
	}
	name := filepath.Join(t.TempDir(), "zoo.cfg")
	must.Do(t, os.WriteFile(name, []byte(b.String()), 0o600))
	c := must.Get(Parse(name))(t)
	if n := len(c.Warnings); n < maxUnknown || n > maxUnknown+10 {
		t.Errorf("%d warnings", n)
	}
	if last := c.Warnings[maxUnknown].String(); !strings.Contains(last, "only the first") {
		t.Errorf("the last one: %s", last)
	}
}

// A path in a configuration may name an endless file, which we should refuse.
func TestEndlessFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endless := filepath.Join(dir, "endless")
	f := must.Get(os.Create(endless))(t)
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil { // a sparse file
		t.Fatal(err)
	}
	name := filepath.Join(dir, "zoo.cfg")
	must.Do(t, os.WriteFile(name, []byte("dataDir="+dir+"\nclientPort=2181\ndynamicConfigFile="+endless+"\n"), 0o600))
	for _, path := range []string{name, endless} {
		if _, err := Parse(path); err == nil || !strings.Contains(err.Error(), "16 MiB") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
