package watch

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/transcript"
	"github.com/zkgo/zkgo/proto"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the commands into testdata/transcript.txt")

// words are the names that the transcript uses.
var (
	kindNames  = []string{"data", "child", "persistent", "recursive"}
	eventNames = map[string]proto.EventType{"created": created, "deleted": deleted, "changed": changed, "children": children}
	typeNames  = map[string]proto.WatcherType{"children": proto.WatcherChildren, "data": proto.WatcherData, "any": proto.WatcherAny}
)

// named is a Sink that writes its name and its events into one list.
type named struct {
	name string
	got  *[]string
}

func (n named) Notify(typ proto.EventType, path string, zxid int64) {
	for word, e := range eventNames {
		if e == typ {
			*n.got = append(*n.got, fmt.Sprintf("%s: %s %s", n.name, word, path))
		}
	}
}

// TestTranscript runs
//
//	add WATCHER KIND PATH        set a watch
//	fire EVENT PATH [WATCHER…]   deliver an event that the named watchers may not see
//	remove WATCHER TYPE PATH     remove watches
//	drop WATCHER                 end a connection
//	list                         all watches
func TestTranscript(t *testing.T) {
	t.Parallel()
	table := NewTable(1 << 10)
	var got []string
	watchers := map[string]*Watcher{}
	watcher := func(name string) *Watcher {
		if watchers[name] == nil {
			watchers[name] = table.NewWatcher(named{name, &got})
		}
		return watchers[name]
	}
	err := transcript.Run("testdata/transcript.txt", *rewrite, func(command string, args []string) string {
		got = nil
		switch command {
		case "add":
			if !table.Add(watcher(args[0]), args[2], Kind(slices.Index(kindNames, args[1]))) {
				return "above the limit"
			}
		case "fire":
			n := table.Fire(eventNames[args[0]], args[1], 7, func(w *Watcher) bool { return !slices.Contains(args[2:], w.Sink().(named).name) })
			if n != len(got) {
				t.Errorf("%d watchers were notified, not %d", len(got), n)
			}
		case "remove":
			if !table.Remove(watcher(args[0]), args[2], typeNames[args[1]]) {
				return "no such watch"
			}
		case "drop":
			table.Drop(watcher(args[0]))
		case "list":
			table.Each(func(w *Watcher, path string, k Kind) {
				got = append(got, fmt.Sprintf("%s: %s %s", w.Sink().(named).name, kindNames[k], path))
			})
		default:
			return "unknown command"
		}
		slices.Sort(got)
		return strings.Join(got, "\n")
	})
	if err != nil {
		t.Error(err)
	}
}
