package version

import (
	_ "embed"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// stamp is set only by "go build -ldflags -X" in a release: version, revision and the
// time of the commit (RFC 3339), separated by spaces.
var stamp string

// archived has the format of stamp if the source is an archive of a commit, as GitHub
// offers them: git archive replaces the line (.gitattributes).
//
//go:embed archive.txt
var archived string

const (
	module = "github.com/zkgo/zkgo"
	devel  = "devel"
	// revisionLength is how many characters of a commit hash are shown.
	revisionLength = 12
)

// find asks in turn: the stamp, Go's build information, the archive's commit, the time of
// the program's file.
func find() build {
	if b, ok := readStamp(stamp); ok {
		return b
	}
	b := build{version: devel}
	if info, ok := debug.ReadBuildInfo(); ok {
		b = fromInfo(info)
	}
	if b.version == devel && b.revision == "" {
		if a, ok := readStamp(archived); ok {
			b = a
		}
	}
	if b.at.IsZero() {
		b.at, b.file = fileTime(), true
	}
	return b
}

// fromInfo reads the build information of a program that contains this module. The program
// may be another one: then its own version and commit aren't ours.
func fromInfo(info *debug.BuildInfo) build {
	b := build{version: devel}
	if info.Main.Path != module {
		for _, m := range info.Deps {
			if m.Path == module && m.Replace == nil {
				b.fromModule(m.Version)
			}
		}
		return b
	}
	b.fromModule(info.Main.Version)
	for _, kv := range info.Settings {
		switch kv.Key {
		case "vcs.revision":
			b.revision = kv.Value[:min(len(kv.Value), revisionLength)]
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, kv.Value); err == nil {
				b.at = t
			}
		}
	}
	return b
}

// pseudo matches a pseudo-version, which contains the time and the commit.
var pseudo = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(\+|$)`)

// fromModule parses the version of the module.
func (b *build) fromModule(version string) {
	if version == "" || version == "(devel)" {
		return
	}
	b.version = strings.TrimPrefix(version, "v")
	if m := pseudo.FindStringSubmatch(version); m != nil {
		b.revision = m[2]
		if t, err := time.Parse("20060102150405", m[1]); err == nil {
			b.at = t
		}
	}
}

// readStamp parses a stamp; ok is false if it is invalid.
func readStamp(s string) (b build, ok bool) {
	words := strings.Fields(s)
	if len(words) != 3 {
		return build{}, false
	}
	at, err := time.Parse(time.RFC3339, words[2])
	revision := words[1][:min(len(words[1]), revisionLength)]
	// The Makefile's default.
	if revision == "unknown" {
		revision = ""
	}
	if at.Unix() == 0 {
		at = time.Time{}
	}
	return build{version: strings.TrimPrefix(words[0], "v"), revision: revision, at: at}, err == nil
}

// fileTime returns when this program was written, or 1970 if the system doesn't say it.
func fileTime() time.Time {
	path, err := os.Executable()
	if err == nil {
		if info, err := os.Stat(path); err == nil {
			return info.ModTime()
		}
	}
	return time.Unix(0, 0)
}
