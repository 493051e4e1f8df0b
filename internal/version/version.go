package version

import (
	"runtime/debug"
	"strings"
	"time"
)

// Compatible is the version of ZooKeeper that zkgo is compatible with.
const Compatible = "3.9.5"

// Own returns zkgo's own version: the module's, or devel.
func Own() string {
	version, _, _ := build()
	return version
}

// Described returns zkgo's own version, and the commit of a build without a version.
func Described() string {
	version, revision, _ := build()
	if version == "devel" && revision != "unknown" {
		return version + "-" + revision
	}
	return version
}

// Text returns the version for tools: they expect ZooKeeper's version first, and
// then the rest in this format.
func Text() string {
	version, revision, built := build()
	return Compatible + "-zkgo" + version + "-" + revision + ", built on " + built.UTC().Format("2006-01-02 15:04 MST")
}

// revisionLength is how many characters of a commit hash are shown.
const revisionLength = 12

// stamp is set only by "go build -ldflags -X" in a release: version, revision and the
// time of the commit (RFC 3339), separated by spaces.
var stamp string

// BuildTime returns the time of the commit that this program was built from, or a fixed
// time if it is unknown.
func BuildTime() time.Time {
	_, _, at := build()
	return at
}

// build returns the version data of the binary.
func build() (version, revision string, at time.Time) {
	if version, revision, at, ok := readStamp(stamp); ok {
		return version, revision, at
	}
	version, revision = "devel", "unknown"
	at = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, revision, at
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		version = v
	}
	for _, kv := range info.Settings {
		switch kv.Key {
		case "vcs.revision":
			revision = kv.Value[:min(len(kv.Value), revisionLength)]
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, kv.Value); err == nil {
				at = t
			}
		}
	}
	return version, revision, at
}

// readStamp parses a stamp; ok is false if it is invalid.
func readStamp(s string) (version, revision string, at time.Time, ok bool) {
	words := strings.Fields(s)
	if len(words) != 3 {
		return "", "", time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, words[2])
	return words[0], words[1], at, err == nil
}
