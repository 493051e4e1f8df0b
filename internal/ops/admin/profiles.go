package admin

import (
	"net/http"
	"net/http/pprof"
)

// profiles adds profiles of the process at /debug/pprof/, for `go tool pprof`. They show
// names of znodes, so only administrators get them.
func profiles(mux *http.ServeMux, g *guard) {
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.HandleFunc(path, g.administrators(h))
	}
}
