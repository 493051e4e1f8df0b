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
		[]route{{"GET", "/v1", nil, "what this is, and the endpoints", getIndex}},
		treeRoutes(), clientRoutes(), faultRoutes(), serverRoutes(),
	)
}

func treeRoutes() []route {
	path := []string{"path"}
	return []route{
		{"GET", "/v1/node", path, "a znode: its data, children and stat", getNode},
		{"PUT", "/v1/node", nil, "write a znode, and create it and what is missing above it", putNode},
		{"DELETE", "/v1/node", path, "delete a znode and all below it", deleteNode},
		{"GET", "/v1/exists", path, "whether there is a znode", getExists},
		{"GET", "/v1/children", path, "the children of a znode", getChildren},
		{"GET", "/v1/dump", nil, "the tree as text to read", getDump},
		{"POST", "/v1/seed", nil, "write many znodes in one transaction", postSeed},
		{"POST", "/v1/snapshots", nil, "keep what the tree holds", postSnapshot},
		{"POST", "/v1/snapshots/{id}/reset", nil, "go back to a snapshot", postReset},
		{"DELETE", "/v1/snapshots/{id}", nil, "forget a snapshot", deleteSnapshot},
	}
}

func clientRoutes() []route {
	return []route{
		{"GET", "/v1/sessions", nil, "all sessions", getSessions},
		{"POST", "/v1/sessions/{id}/expire", nil, "end a session as if its time were over", postExpire},
		{"POST", "/v1/sessions/{id}/drop", nil, "close the connection of a session", postDrop},
		{"POST", "/v1/sessions/{id}/hang", nil, "stop everything between the server and a client", postHang},
		{"POST", "/v1/sessions/{id}/resume", nil, "end hang", postResume},
		{"POST", "/v1/sessions/{id}/slow", nil, "make everything between the server and a client late", postSlow},
		{"POST", "/v1/sessions/{id}/fast", nil, "end slow", postFast},
		{"POST", "/v1/connections/slow", nil, "make everything between servers and clients late", postSlowAll},
		{"POST", "/v1/connections/fast", nil, "end slow", postFastAll},
		{"POST", "/v1/connections/drop", nil, "close all connections", postDropAll},
		{"POST", "/v1/connections/refuse", nil, "turn new connections away", postRefuse},
		{"POST", "/v1/connections/accept", nil, "end refuse", postAccept},
		{"GET", "/v1/ephemerals", nil, "all ephemeral znodes and their sessions", getEphemerals},
		{"GET", "/v1/watches", nil, "all watches of clients", getWatches},
		{"POST", "/v1/advance", nil, "move the clock, and do what would have happened meanwhile", postAdvance},
		{"POST", "/v1/wait", nil, "wait for something", postWait},
	}
}

func faultRoutes() []route {
	return []route{
		{"POST", "/v1/faults", nil, "plan a fault for one request", postFault},
		{"GET", "/v1/faults", nil, "all faults, and whether they happened", getFaults},
		{"GET", "/v1/faults/{id}", nil, "one of them", getFault},
		{"DELETE", "/v1/faults/{id}", nil, "call a fault off", deleteFault},
		{"DELETE", "/v1/faults", nil, "call all faults off", deleteFaults},
		{"GET", "/v1/requests", []string{"op", "path", "session"}, "count requests", getRequests},
		{"DELETE", "/v1/requests", nil, "count anew", deleteRequests},
		{"POST", "/v1/recordings", nil, "record what clients and servers say", postRecording},
		{"GET", "/v1/recordings/{id}", nil, "what was recorded so far", getRecording},
		{"DELETE", "/v1/recordings/{id}", nil, "end and forget a recording", deleteRecording},
	}
}

func serverRoutes() []route {
	return []route{
		{"GET", "/v1/servers", nil, "the servers and how they are", getServers},
		{"POST", "/v1/servers/{id}/kill", nil, "end a server as kill -9 does", onMember(kill)},
		{"POST", "/v1/servers/{id}/start", nil, "start a killed server", onMember(revive)},
		{"POST", "/v1/servers/{id}/restart", nil, "start a killed server and wait until all serve", postRestart},
		{"POST", "/v1/servers/{id}/pause", nil, "make a server stand still", onMember(pause)},
		{"POST", "/v1/servers/{id}/resume", nil, "end pause", onMember(unpause)},
		{"POST", "/v1/servers/{id}/readonly", nil, "put a server into read-only mode", onMember(readOnly)},
		{"POST", "/v1/servers/{id}/writable", nil, "end readonly", onMember(writable)},
		{"POST", "/v1/servers/{id}/filldisk", nil, "have no space on its disk", onMember(fillDisk)},
		{"POST", "/v1/servers/{id}/failfsync", nil, "have its disk fail", onMember(failFsync)},
		{"POST", "/v1/servers/{id}/healdisk", nil, "end filldisk and failfsync", onMember(healDisk)},
		{"POST", "/v1/links/slow", nil, "make what two servers tell one another late", postSlowLink},
		{"POST", "/v1/links/fast", nil, "end that, for all", postFastLinks},
		{"POST", "/v1/partition", nil, "cut the network between the servers", postPartition},
		{"POST", "/v1/heal", nil, "end a partition", postHeal},
		{"GET", "/v1/leader", nil, "which server leads; waits until one does", getLeader},
		{"POST", "/v1/leader", nil, "have the leader hand over to another server", postLeader},
		{"POST", "/v1/stop", nil, "end the test server", postStop},
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
		refuse(w, missing("there is no %s; GET /v1 lists what there is", req.URL.Path))
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
