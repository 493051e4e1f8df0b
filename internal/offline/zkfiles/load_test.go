package zkfiles

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// files returns files written by a real ZooKeeper 3.9.5, for tests that damage them.
func files(t testing.TB) fstest.MapFS {
	t.Helper()
	m := make(fstest.MapFS)
	d := must.Get(recorded(t, "3.9.5").inside())(t)
	entries := must.Get(fs.ReadDir(d.FS, "."))(t)
	for _, e := range entries {
		b := must.Get(fs.ReadFile(d.FS, e.Name()))(t)
		m[e.Name()] = &fstest.MapFile{Data: b}
	}
	return m
}

// last returns the name of the last snapshot or log.
func last(m fstest.MapFS, prefix string) string {
	names := byZxid(m, prefix)
	return names[len(names)-1]
}

func byZxid(m fstest.MapFS, prefix string) (names []string) {
	for name := range m {
		if zxidOf(name, prefix) >= 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return int(zxidOf(a, prefix) - zxidOf(b, prefix)) })
	return names
}

// end returns the end of a log's last record.
func end(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

// TestLoad covers problems of a directory that are errors, and problems that are warnings.
func TestLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(m fstest.MapFS, src *Source)
		fails  string // expected error; "" for none
		warns  string
	}{
		{"nothing", func(fstest.MapFS, *Source) {}, "", ""},
		{"the last record is cut", func(m fstest.MapFS, _ *Source) {
			f := m[last(m, logPrefix)]
			f.Data = f.Data[:end(f.Data)-5]
		}, "", "the file ends within a record"},
		{"the last record has no end mark", func(m fstest.MapFS, _ *Source) {
			f := m[last(m, logPrefix)]
			f.Data[end(f.Data)-1] = 0
		}, "", "without its end mark"},
		{"half a record header", func(m fstest.MapFS, _ *Source) {
			f := m[last(m, logPrefix)]
			f.Data = append(f.Data[:end(f.Data)], 0, 0, 0, 0, 1, 2, 3)
		}, "", "within the header of a record"},
		{"an empty last log", func(m fstest.MapFS, _ *Source) { m["log.ffff"] = new(fstest.MapFile) }, "", "log.ffff: at offset 0: the file is empty"},
		{"a log with half a header", func(m fstest.MapFS, _ *Source) { m["log.ffff"] = &fstest.MapFile{Data: []byte("ZKLG")} }, "log.ffff: at offset 4: the file ends within its header", ""},
		{"another file called log", func(m fstest.MapFS, _ *Source) {
			m["log.ffff"] = &fstest.MapFile{Data: []byte("2026-11-22 a line of text")}
		}, "log.ffff: at offset 0: not a transaction log", ""},
		{"a flipped bit in a log", func(m fstest.MapFS, _ *Source) { m[last(m, logPrefix)].Data[40] ^= 4 }, "but its content has", ""},
		{"zeros amid a log", func(m fstest.MapFS, _ *Source) { clear(m[last(m, logPrefix)].Data[16:28]) }, "there is a whole record: the file is damaged here", ""},
		{"a length that lies", func(m fstest.MapFS, _ *Source) { m[last(m, logPrefix)].Data[24] = 0x7f }, "there is a whole record: the file is damaged here", ""},
		{"a damaged newest snapshot", func(m fstest.MapFS, _ *Source) { m[last(m, snapshotPrefix)].Data[90] ^= 1 }, "", "the next older snapshot is used"},
		{"no good snapshot", func(m fstest.MapFS, _ *Source) {
			for _, name := range byZxid(m, snapshotPrefix) {
				m[name].Data = m[name].Data[:60]
			}
		}, "no snapshot can be read", ""},
		{"no logs", func(m fstest.MapFS, _ *Source) {
			for _, name := range byZxid(m, logPrefix) {
				delete(m, name)
			}
		}, "snapshots but no transaction logs", ""},
		{"a missing log", func(m fstest.MapFS, _ *Source) {
			for _, name := range byZxid(m, snapshotPrefix)[1:] {
				delete(m, name)
			}
			delete(m, byZxid(m, logPrefix)[1])
		}, "the transactions between them are missing", ""},
		{"a missing log, accepted", func(m fstest.MapFS, src *Source) {
			for _, name := range byZxid(m, snapshotPrefix)[1:] {
				delete(m, name)
			}
			delete(m, byZxid(m, logPrefix)[1])
			src.AcceptGaps, src.IgnoreDigest = true, true
		}, "", "the transactions between them are missing"},
		{"a log cut amid the others", func(m fstest.MapFS, _ *Source) {
			for _, name := range byZxid(m, snapshotPrefix)[1:] {
				delete(m, name)
			}
			f := m[byZxid(m, logPrefix)[1]]
			f.Data = f.Data[:end(f.Data)-5]
		}, "the transactions between them are missing (src/log.", ""},
		{"nothing of ZooKeeper's", func(m fstest.MapFS, _ *Source) { clear(m) }, "no files of ZooKeeper", ""},
		{"logs in both places", func(m fstest.MapFS, src *Source) { src.Logs = Dir{files(t), "logs"} }, "which are the right ones", ""},
		{"an epoch that is none", func(m fstest.MapFS, _ *Source) { m["currentEpoch"] = &fstest.MapFile{Data: []byte("x")} }, `src/currentEpoch: "x" is not an epoch`, ""},
		{"a file that cannot be read", func(m fstest.MapFS, _ *Source) { m["log.ffff"] = &fstest.MapFile{Mode: fs.ModeDir} }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := files(t)
			src := Source{Data: Dir{m, "src"}}
			c.damage(m, &src)
			_, r, err := Load(src)
			switch {
			case c.fails == "" && err != nil:
				t.Fatal(err)
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Fatalf("got %v, want %q", err, c.fails)
			case c.fails != "":
				return
			}
			if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, c.warns) || c.warns == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, c.warns)
			}
		})
	}
}

// TestLoadFromSeparateDirectories covers dataDir and dataLogDir, with the epochs of
// an ensemble, and progress.
func TestLoadFromSeparateDirectories(t *testing.T) {
	t.Parallel()
	all, data, logs := files(t), fstest.MapFS{}, fstest.MapFS{}
	for name, f := range all {
		if zxidOf(name, logPrefix) >= 0 {
			logs["version-2/"+name] = f
		} else {
			data["version-2/"+name] = f
		}
	}
	data["version-2/currentEpoch"] = &fstest.MapFile{Data: []byte("4")}
	data["version-2/acceptedEpoch"] = &fstest.MapFile{Data: []byte("5\n")}
	var done, total int64
	src := Source{Data: Dir{data, "d"}, Logs: Dir{logs, "l"}, Progress: func(d, n int64) {
		if d < done || d > n {
			t.Errorf("%d of %d after %d of %d", d, n, done, total)
		}
		done, total = d, n
	}}
	_, _, r := loaded(t, src)
	if r.Epoch != 5 || r.Snapshot != "d/version-2/"+last(all, snapshotPrefix) || !r.Verified {
		t.Errorf("%+v", *r)
	}
	if done == 0 || done != total {
		t.Errorf("at the end %d of %d", done, total)
	}
	want, _, _ := loaded(t, Source{Data: Dir{all, "d"}})
	src.Progress = nil
	got, _, _ := loaded(t, src)
	if shown(got) != shown(want) {
		t.Error("another state")
	}
	src.Data, src.Logs = src.Logs, src.Data
	if _, _, err := Load(src); err == nil {
		t.Error("the two directories, exchanged")
	}
}

// TestWrongDigest changes a log entry and corrects its checksum.
func TestWrongDigest(t *testing.T) {
	t.Parallel()
	m := files(t)
	f := m[last(m, logPrefix)]
	f.Data = f.Data[:end(f.Data)]
	b := f.Data
	size := len(b) - lastRecord(b) - recordHeader - 1
	payload := b[lastRecord(b)+recordHeader:][:size]
	payload[size-1] ^= 1
	resum(b[lastRecord(b):])
	src := Source{Data: Dir{m, "src"}}
	if _, _, err := Load(src); err == nil || !strings.Contains(err.Error(), "differs from the source") {
		t.Error(err)
	}
	src.IgnoreDigest = true
	if _, r, err := Load(src); err != nil || r.Verified || r.Different != 1 || len(r.Warnings) != 2 {
		t.Error(r, err)
	}
}

// TestLogsWithoutSnapshot covers ZooKeeper 3.4, which may not have written a snapshot
// yet.
func TestLogsWithoutSnapshot(t *testing.T) {
	t.Parallel()
	d := must.Get(recorded(t, "3.4.14").inside())(t)
	want, _, _ := loaded(t, Source{Data: d})
	got, _, r := loaded(t, Source{Data: Dir{hiding{d.FS, -1}, "d"}})
	if shown(got) != shown(want) || r.Snapshot != "" {
		t.Errorf("%+v\n got %s\nwant %s", *r, shown(got), shown(want))
	}
}
