package locks

import "fmt"

// kind is what an event is.
type kind string

// The kinds of event.
const (
	entered kind = "enter"  // the holder was told the values
	plainly kind = "plain"  // the plain register took a value
	fenced  kind = "fenced" // the fenced register took a value, or refused it
	left    kind = "exit"
	alive   kind = "alive" // the znode of a holder was there when another was in
)

// event is one thing that the registers saw, in their order.
type event struct {
	kind  kind
	line  string
	who   *holder
	value int
	taken bool    // by the fenced register
	held  bool    // left: the lease said so, after all answers
	other *holder // alive: who was in
}

// holder is one turn of one worker.
type holder struct {
	lang  string
	pid   int
	mode  string // write, read or lease
	token int64
	path  string
	znode string // what became of his multi: ok, refused or unknown
	out   bool   // he has told so
	dead  bool   // his worker has ended
}

func (h *holder) String() string {
	return fmt.Sprintf("%s %d (%s, token %#x, %s)", h.lang, h.pid, h.mode, h.token, h.path)
}

// judge returns what must never happen and did. It trusts nothing that the
// registers decided.
func judge(events []event) []string {
	var wrong []string
	greatest := make(map[string]int64) // of those who have entered and exclude others
	values := make(map[string]int)
	followed := make(map[*holder]bool) // another had entered when he was answered
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
