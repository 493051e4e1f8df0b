package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// command is one of ZooKeeper's commands.
type command struct {
	names       []string // the first is the primary name
	open        bool     // shows only roles and numbers, so every caller may run it
	needsServer bool     // fails while the server doesn't serve clients
	long        bool     // the answer grows with the number of clients
	run         func(src Source, r *http.Request) (object, error)
	serve       func(s *snapshots, w http.ResponseWriter, r *http.Request) // instead of run
}

// all lists the commands. As in ZooKeeper, ruok requires that the server serves clients, so
// you should use /livez to check the process. A command is closed unless it is marked as open.
func all() []command {
	serving := func(run func(Source) object, names ...string) command {
		return command{names: names, needsServer: true, run: func(src Source, _ *http.Request) (object, error) { return run(src), nil }}
	}
	always := func(run func(Source) object, names ...string) command {
		c := serving(run, names...)
		c.needsServer = false
		return c
	}
	long := func(run func(Source) object, names ...string) command {
		c := serving(run, names...)
		c.long = true
		return c
	}
	open := func(c command) command {
		c.open = true
		return c
	}
	return []command{
		serving(configuration, "configuration", "conf", "config"),
		long(connections, "connections", "cons"),
		serving(resetConnections, "connection_stat_reset", "crst"),
		open(serving(dirs, "dirs")),
		long(dump, "dump"),
		always(environment, "environment", "env", "envi"),
		open(always(traceMask, "get_trace_mask", "gtmk")),
		open(serving(digests, "hash")),
		serving(initialConfiguration, "initial_configuration", "icfg"),
		open(serving(isReadOnly, "is_read_only", "isro")),
		open(serving(lastSnapshot, "last_snapshot", "lsnp")),
		{names: []string{"leader", "lead"}, open: true, needsServer: true, run: leader},
		open(serving(monitor, "monitor", "mntr")),
		serving(observers, "observers", "obsr"),
		serving(nothing, "observer_connection_stat_reset", "orst"),
		{names: []string{"restore", "rest"}, serve: (*snapshots).serveRestore},
		open(serving(nothing, "ruok")),
		open(serving(serverStats, "server_stats", "srvr")),
		{names: []string{"set_trace_mask", "stmk"}, run: setTraceMask},
		{names: []string{"snapshot", "snap"}, serve: reading((*snapshots).serveSnapshot)},
		serving(resetServer, "stat_reset", "srst"),
		long(stats, "stats", "stat"),
		always(systemProperties, "system_properties", "sysp"),
		serving(votingView, "voting_view"),
		open(serving(watchSummary, "watch_summary", "wchs")),
		long(watches, "watches", "wchc"),
		long(watchesByPath, "watches_by_path", "wchp"),
		open(always(zabState, "zabstate")),
	}
}

// reading rejects all methods except GET and HEAD.
func reading(serve func(s *snapshots, w http.ResponseWriter, r *http.Request)) func(s *snapshots, w http.ResponseWriter, r *http.Request) {
	return func(s *snapshots, w http.ResponseWriter, r *http.Request) {
		get(func(w http.ResponseWriter, r *http.Request) { serve(s, w, r) })(w, r)
	}
}

// byName returns all commands, keyed by each of their names.
func byName() map[string]command {
	m := make(map[string]command)
	for _, c := range all() {
		for _, name := range c.names {
			m[name] = c
		}
	}
	return m
}

func nothing(Source) object { return nil }

func resetConnections(src Source) object { src.ResetConns(); return nil }

func resetServer(src Source) object { src.ResetServer(); return nil }

func dirs(src Source) object {
	data, log := src.Dirs()
	return object{{"datadir_size", data}, {"logdir_size", log}}
}

func dump(src Source) object {
	s := src.Sessions()
	expiry := object{}
	for _, at := range slices.SortedFunc(maps.Keys(s.Expiry), compareTimes) {
		expiry = expiry.with(strconv.FormatInt(at.UnixMilli(), 10), s.Expiry[at])
	}
	ephemerals := object{}
	for _, id := range slices.Sorted(maps.Keys(s.Ephemerals)) {
		ephemerals = ephemerals.with(strconv.FormatInt(id, 10), s.Ephemerals[id])
	}
	return object{{"expiry_time_to_session_ids", expiry}, {"session_id_to_ephemeral_paths", ephemerals}}
}

func environment(src Source) object {
	var o object
	for _, p := range src.Environment() {
		o = o.with(p.Key, p.Value)
	}
	return o
}

// systemProperties returns the part of the environment that Java exposes as
// properties.
func systemProperties(src Source) object {
	o := object{{"file.separator", "/"}, {"line.separator", "\n"}, {"path.separator", ":"}}
	for _, p := range src.Environment() {
		for _, prefix := range []string{"java.", "os.name", "os.arch", "os.version", "user."} {
			if strings.HasPrefix(p.Key, prefix) {
				o = o.with(p.Key, p.Value)
			}
		}
	}
	slices.SortFunc(o, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return o
}

func traceMask(src Source) object { return object{{"tracemask", int64(src.TraceMask())}} }

func setTraceMask(src Source, r *http.Request) (object, error) {
	values, given := r.URL.Query()["traceMask"]
	if !given {
		return nil, errors.New("setTraceMask requires long traceMask argument")
	}
	mask, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("setTraceMask requires long traceMask argument, got %s", values[0])
	}
	src.SetTraceMask(uint64(mask))
	return object{{"tracemask", mask}}, nil
}

func digests(src Source) object {
	list := []object{}
	for _, d := range src.Digests() {
		list = append(list, object{{"zxid", d.Zxid}, {"digest", int64(d.Digest)}, {"digest_version", digestVersion}})
	}
	return object{{"digests", list}}
}

// digestVersion is the version of ZooKeeper's digest algorithm.
const digestVersion = 2

func isReadOnly(src Source) object { return object{{"read_only", src.Server().ReadOnly}} }

func lastSnapshot(src Source) object {
	zxid, at, ok := src.LastSnapshot()
	if !ok {
		return object{{"zxid", "ffffffffffffffff"}, {"timestamp", -1}}
	}
	return object{{"zxid", strconv.FormatUint(uint64(zxid), 16)}, {"timestamp", at.Unix()}}
}

// monitor returns the output of mntr. Values that parse as numbers become JSON
// numbers.
func monitor(src Source) object {
	var o object
	for _, m := range src.Metrics() {
		if _, err := strconv.ParseFloat(m.Value, 64); err == nil {
			o = o.with(m.Line(), json.Number(m.Value))
		} else {
			o = o.with(m.Line(), m.Value)
		}
	}
	return o
}

func watchSummary(src Source) object {
	w := src.Watches()
	return object{{"num_connections", w.Conns}, {"num_paths", w.Paths}, {"num_total_watches", w.Total}}
}

func watches(src Source) object {
	bySession := src.WatchesBySession()
	o := object{}
	for _, id := range slices.Sorted(maps.Keys(bySession)) {
		o = o.with(strconv.FormatInt(id, 10), bySession[id])
	}
	return object{{"session_id_to_watched_paths", o}}
}

func watchesByPath(src Source) object {
	byPath := src.WatchesByPath()
	o := object{}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		o = o.with(path, byPath[path])
	}
	return object{{"path_to_session_ids", o}}
}
