package admin

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// Source provides the state of the server that the commands report.
type Source interface {
	status.Source
	Authorizer
	// LastSnapshot returns the zxid and the time of the newest snapshot; ok is false if no
	// snapshot exists.
	LastSnapshot() (zxid int64, at time.Time, ok bool)
	// BeginLong waits until the handler may answer a command with an answer that grows with
	// the number of clients. The source calls cut to end the answer early. The handler calls
	// sending when the answer is complete, and end after sending it. Both are nil if the
	// client has left and needs no answer.
	BeginLong(command string, r *http.Request, cut func()) (sending, end func())
}

// DefaultURL is the path of the commands unless the configuration sets another.
const DefaultURL = "/commands"

// errNotServing is ZooKeeper's error of a server without a quorum.
const errNotServing = "This ZooKeeper instance is not currently serving requests"

// Handler serves the commands below the path url, and /livez and /readyz. If src is a
// Snapshotter, it also serves the commands snapshot and restore.
func Handler(src Source, url string, opts Options) http.Handler {
	url = strings.TrimSuffix(url, "/")
	h := &handler{src: src, guard: guard{src, &opts}, commands: byName()}
	if s, can := src.(Snapshotter); can {
		h.snapshots = &snapshots{src: s, opts: opts, guard: &h.guard}
	}
	mux := http.NewServeMux()
	if opts.Profiles {
		profiles(mux, &h.guard)
	}
	mux.HandleFunc("/livez", get(h.live))
	mux.HandleFunc("/readyz", get(h.ready))
	if url != "" {
		mux.HandleFunc(url, get(h.list(url)))
		mux.HandleFunc("/{$}", get(index(url)))
	}
	list := get(h.list(url))
	mux.HandleFunc(url+"/", func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, url+"/")
		if name == "" {
			list(w, r)
			return
		}
		h.command(w, r, name)
	})
	return mux
}

type handler struct {
	src       Source
	guard     guard
	commands  map[string]command
	snapshots *snapshots // nil if src isn't a Snapshotter
}

// get rejects all methods except GET and HEAD.
func get(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			f(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
	}
}

// index serves the root page, which links to the other pages.
func index(url string) http.HandlerFunc {
	page := fmt.Sprintf(`<!DOCTYPE html><title>zkgo</title><h1>zkgo</h1><ul>
<li><a href="%s">%[1]s</a>: commands that show or change the state of this server
<li><a href="/livez">/livez</a>: whether the process answers
<li><a href="/readyz">/readyz</a>: whether the server serves clients, and if not, why
</ul>
`, html.EscapeString(url))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	}
}

// live reports that the process runs and answers.
func (h *handler) live(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// ready reports whether the server serves all clients, and if not, why.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	s := h.src.Server()
	if s.Serving && !s.ReadOnly {
		h.live(w, r)
		return
	}
	state := "not serving clients: " + s.Mode
	if s.ReadOnly {
		state = "serving only read-only clients"
	}
	if s.Reason != "" {
		state += ": " + s.Reason
	}
	http.Error(w, state, http.StatusServiceUnavailable)
}

// list serves links to all commands.
func (h *handler) list(url string) http.HandlerFunc {
	var names []string
	for _, c := range h.commands {
		names = append(names, c.names[0])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var page strings.Builder
	for _, name := range names {
		fmt.Fprintf(&page, "<a href=\"%s/%s\">%s</a>\n<br/>\n", url, name, name)
	}
	text := page.String()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, text)
	}
}

// command runs one command.
func (h *handler) command(w http.ResponseWriter, r *http.Request, name string) {
	c, known := h.commands[name]
	switch {
	case !known:
		reply(w, http.StatusOK, name, nil, "Unknown command: "+name)
	case c.serve != nil:
		h.state(w, r, &c)
	default:
		get(func(w http.ResponseWriter, r *http.Request) {
			src := h.src
			if c.open && !h.guard.trusts(r) {
				src = withoutNames{src}
			}
			if !c.open && !h.guard.admits(w, r) {
				return
			}
			if c.needsServer && !h.src.Server().Serving {
				reply(w, http.StatusOK, c.names[0], nil, errNotServing)
				return
			}
			sending := func() {}
			if c.long {
				var end func()
				sending, end = h.src.BeginLong(c.names[0], r, func() {
					_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
				})
				if end == nil {
					return
				}
				defer end()
			}
			o, err := c.run(src, r)
			sending()
			if err != nil {
				reply(w, http.StatusOK, c.names[0], nil, err.Error())
				return
			}
			reply(w, http.StatusOK, c.names[0], o, "")
		})(w, r)
	}
}

// state runs a command that reads or replaces the whole state.
func (h *handler) state(w http.ResponseWriter, r *http.Request, c *command) {
	switch {
	case h.snapshots == nil:
		reply(w, http.StatusServiceUnavailable, c.names[0], nil, "this server has no snapshots")
	case !h.src.Server().Serving:
		reply(w, http.StatusOK, c.names[0], nil, errNotServing)
	default:
		c.serve(h.snapshots, w, r)
	}
}

// reply sends the given fields together with the fields that every reply has.
func reply(w http.ResponseWriter, code int, name string, o object, problem string) {
	o = o.with("command", name)
	if problem == "" {
		o = o.with("error", nil)
	} else {
		o = o.with("error", problem)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = o.encode(w) // the client may have closed the connection
}
