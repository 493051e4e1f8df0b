package control

import (
	"net/http"
	"slices"
	"strings"
)

// route is one endpoint.
type route struct {
	method, path string
	params       []string // query parameters in addition to server
	does         string
	handle       func(c *call) (any, error)
}

// routes returns all endpoints.
func routes() []route {
	return slices.Concat(
		[]route{{"GET", "/v1", nil, "version and list of endpoints", getIndex}},
		treeRoutes(), clientRoutes(), faultRoutes(), serverRoutes(),
	)
}

func treeRoutes() []route {
	path := []string{"path"}
	return []route{
		{"GET", "/v1/node", path, "get the data, children and stat of a znode", getNode},
		{"PUT", "/v1/node", nil, "write a znode, creating it and its parents if missing", putNode},
		{"DELETE", "/v1/node", path, "delete a znode and its descendants", deleteNode},
		{"GET", "/v1/exists", path, "check whether a znode exists", getExists},
		{"GET", "/v1/children", path, "list the children of a znode", getChildren},
		{"GET", "/v1/dump", nil, "get the tree as text", getDump},
		{"POST", "/v1/seed", nil, "write many znodes in one transaction", postSeed},
		{"POST", "/v1/snapshots", nil, "save the tree as a snapshot", postSnapshot},
		{"POST", "/v1/snapshots/{id}/reset", nil, "restore a snapshot", postReset},
		{"DELETE", "/v1/snapshots/{id}", nil, "delete a snapshot", deleteSnapshot},
	}
}

func clientRoutes() []route {
	return []route{
		{"GET", "/v1/sessions", nil, "list sessions", getSessions},
		{"POST", "/v1/sessions/{id}/expire", nil, "expire a session", postExpire},
		{"POST", "/v1/sessions/{id}/drop", nil, "close the connection of a session", postDrop},
		{"POST", "/v1/sessions/{id}/hang", nil, "hang the connection of a session", postHang},
		{"POST", "/v1/sessions/{id}/resume", nil, "end hang", postResume},
		{"POST", "/v1/sessions/{id}/slow", nil, "delay the connection of a session", postSlow},
		{"POST", "/v1/sessions/{id}/fast", nil, "end slow", postFast},
		{"POST", "/v1/connections/slow", nil, "delay all client connections", postSlowAll},
		{"POST", "/v1/connections/fast", nil, "end slow", postFastAll},
		{"POST", "/v1/connections/drop", nil, "close all connections", postDropAll},
		{"POST", "/v1/connections/refuse", nil, "refuse new connections", postRefuse},
		{"POST", "/v1/connections/accept", nil, "end refuse", postAccept},
		{"GET", "/v1/ephemerals", nil, "list ephemeral znodes and their sessions", getEphemerals},
		{"GET", "/v1/watches", nil, "list watches", getWatches},
		{"POST", "/v1/advance", nil, "advance the clock, including all timeouts in between", postAdvance},
		{"POST", "/v1/wait", nil, "wait for a condition", postWait},
	}
}

func faultRoutes() []route {
	return []route{
		{"POST", "/v1/faults", nil, "add a fault for one request", postFault},
		{"GET", "/v1/faults", nil, "list faults, and whether they happened", getFaults},
		{"GET", "/v1/faults/{id}", nil, "get a fault", getFault},
		{"DELETE", "/v1/faults/{id}", nil, "remove a fault", deleteFault},
		{"DELETE", "/v1/faults", nil, "remove all faults", deleteFaults},
		{"GET", "/v1/requests", []string{"op", "path", "session"}, "count requests", getRequests},
		{"DELETE", "/v1/requests", nil, "count anew", deleteRequests},
		{"POST", "/v1/recordings", nil, "record the messages between clients and servers", postRecording},
		{"GET", "/v1/recordings/{id}", nil, "get a recording", getRecording},
		{"DELETE", "/v1/recordings/{id}", nil, "end and delete a recording", deleteRecording},
	}
}

func serverRoutes() []route {
	return []route{
		{"GET", "/v1/servers", nil, "list the servers and their state", getServers},
		{"POST", "/v1/servers/{id}/kill", nil, "kill a server, like kill -9", onMember(kill)},
		{"POST", "/v1/servers/{id}/start", nil, "start a killed server", onMember(revive)},
		{"POST", "/v1/servers/{id}/restart", nil, "start a killed server and wait until all servers serve", postRestart},
		{"POST", "/v1/servers/{id}/pause", nil, "pause a server", onMember(pause)},
		{"POST", "/v1/servers/{id}/resume", nil, "end pause", onMember(unpause)},
		{"POST", "/v1/servers/{id}/readonly", nil, "put a server into read-only mode", onMember(readOnly)},
		{"POST", "/v1/servers/{id}/writable", nil, "end readonly", onMember(writable)},
		{"POST", "/v1/servers/{id}/filldisk", nil, "make writes to a server's disk fail: no space", onMember(fillDisk)},
		{"POST", "/v1/servers/{id}/failfsync", nil, "make fsync on a server's disk fail", onMember(failFsync)},
		{"POST", "/v1/servers/{id}/healdisk", nil, "end filldisk and failfsync", onMember(healDisk)},
		{"POST", "/v1/links/slow", nil, "delay the network between two servers", postSlowLink},
		{"POST", "/v1/links/fast", nil, "end slow, for all", postFastLinks},
		{"POST", "/v1/partition", nil, "cut the network between the servers", postPartition},
		{"POST", "/v1/heal", nil, "end a partition", postHeal},
		{"GET", "/v1/leader", nil, "get the leader; waits until there is one", getLeader},
		{"POST", "/v1/leader", nil, "make another server the leader", postLeader},
		{"POST", "/v1/stop", nil, "stop the test server", postStop},
	}
}

// handler returns an HTTP handler for the routes.
func (t *TestServer) handler() http.Handler {
	mux := http.NewServeMux()
	methods := make(map[string][]string)
	for _, r := range routes() {
		methods[r.path] = append(methods[r.path], r.method)
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) { t.serve(w, req, &r) })
	}
	for path, known := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Allow", strings.Join(known, ", "))
			refuse(w, &refusal{kind: notAllowed, text: req.Method + " " + req.URL.Path + ": want " + strings.Join(known, " or ")})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		refuse(w, missing("no endpoint %s; GET /v1 lists the endpoints", req.URL.Path))
	})
	return mux
}

// serve handles one HTTP request.
func (t *TestServer) serve(w http.ResponseWriter, req *http.Request, r *route) {
	c := &call{TestServer: t, r: req}
	var result any
	err := c.query(r.params)
	if err == nil {
		if ended := try(func() { result, err = r.handle(c) }); ended != nil {
			err = ended
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, result)
}

// getIndex lists the endpoints.
func getIndex(c *call) (any, error) {
	type endpoint struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Does   string `json:"does"`
	}
	var list []endpoint
	for _, r := range routes() {
		list = append(list, endpoint{r.method, r.path, r.does})
	}
	return map[string]any{"ready": c.Ready(), "endpoints": list}, nil
}

func postStop(c *call) (any, error) {
	c.stop.Do(func() { close(c.stopped) })
	return none{}, nil
}

// Endpoints lists all endpoints as "METHOD /path".
func Endpoints() []string {
	var list []string
	for _, r := range routes() {
		list = append(list, r.method+" "+r.path)
	}
	return list
}
