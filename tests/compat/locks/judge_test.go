package locks

import "fmt"

// kind is the kind of an event.
type kind string

// The kinds of event.
const (
	entered kind = "enter"  // the holder got the values
	plainly kind = "plain"  // the plain register accepted a value
	fenced  kind = "fenced" // the fenced register accepted a value, or refused it
	left    kind = "exit"
	alive   kind = "alive" // a holder's znode still existed after another had entered
)

// event is something that the registers saw; events are in the registers' order.
type event struct {
	kind  kind
	line  string
	who   *holder
	value int
	taken bool    // by the fenced register
	held  bool    // left: the lease reported that it was held, after all replies
	other *holder // alive: the holder that had entered
}

// holder is one turn of one worker.
type holder struct {
	lang  string
	pid   int
	mode  string // write, read or lease
	token int64
	path  string
	znode string // the outcome of its multi: ok, refused or unknown
	out   bool   // it has told the register that it leaves
	dead  bool   // its worker has ended
}

func (h *holder) String() string {
	return fmt.Sprintf("%s %d (%s, token %#x, %s)", h.lang, h.pid, h.mode, h.token, h.path)
}

// judge returns the violations. We don't rely on the registers' decisions here.
func judge(events []event) []string {
	var wrong []string
	greatest := make(map[string]int64) // token of all that have entered, by line
	values := make(map[string]int)
	followed := make(map[*holder]bool) // another had entered before its write
	for _, e := range events {
		switch e.kind {
		case entered:
			greatest[e.line] = max(greatest[e.line], e.who.token)
		case plainly, fenced:
			late := e.who.token < greatest[e.line]
			followed[e.who] = followed[e.who] || late
			if e.kind == plainly || !e.taken {
				break
			}
			if late {
				wrong = append(wrong, fmt.Sprintf("%s: the write of %v was taken after token %#x", e.line, e.who, greatest[e.line]))
			}
			if e.value != values[e.line]+1 {
				wrong = append(wrong, fmt.Sprintf("%s: %v wrote %d over %d: a write is lost", e.line, e.who, e.value, values[e.line]))
			}
			values[e.line] = e.value
		case left:
			if e.held && followed[e.who] {
				wrong = append(wrong, fmt.Sprintf("%s: the lease of %v said that it was held after another had entered", e.line, e.who))
			}
		case alive:
			wrong = append(wrong, fmt.Sprintf("%s: %v has the lock while the znode of %v is there", e.line, e.who, e.other))
		}
	}
	return wrong
}
