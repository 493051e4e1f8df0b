package version

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Compatible is the version of ZooKeeper that zkgo is compatible with.
const Compatible = "3.9.5"

// Own returns zkgo's own version: the release, the Go module's version, or devel.
func Own() string { return current().version }

// Text returns the version for tools: they expect ZooKeeper's version first, and
// then the rest in this format.
func Text() string { return current().text() }

// Line returns the version for people, in one line.
func Line() string { return current().line() }

// BuildTime returns the time of the commit that this program was built from. If it is
// unknown, it returns the time of the program's file.
func BuildTime() time.Time { return current().at }

// Commit returns the commit that this program was built from, or "" if it is unknown.
func Commit() string { return current().revision }

// build describes the source of a binary.
type build struct {
	version  string // without v
	revision string // the commit, or "" if the binary doesn't contain it
	at       time.Time
	file     bool // whether at is the time of the binary's file, because the commit's time is unknown
}

// current returns the data of this binary.
var current = sync.OnceValue(find)

func (b build) text() string {
	version := b.version
	switch {
	case b.revision == "":
		version += "-unknown"
	case !strings.Contains(version, b.revision): // a pseudo-version contains it
		version += "-" + b.revision
	}
	// Programs that parse the version expect letters, digits, dots and hyphens.
	return Compatible + "-zkgo" + strings.ReplaceAll(version, "+", ".") + ", built on " + b.when()
}

func (b build) line() string {
	commit, date := "unknown", b.when()
	if b.revision != "" {
		commit = b.revision
	}
	if b.file {
		date += " (of the program's file)"
	}
	return fmt.Sprintf("zkgo %s (ZooKeeper %s) %s/%s %s, commit %s, %s", b.version, Compatible, runtime.GOOS, runtime.GOARCH, runtime.Version(), commit, date)
}

func (b build) when() string { return b.at.UTC().Format("2006-01-02 15:04 MST") }
