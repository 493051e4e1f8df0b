package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// maxBody is the longest body of a request.
const maxBody = 64 << 20

// call is one request to an endpoint.
type call struct {
	*TestServer
	r *http.Request
}

// none is the answer of endpoints that have nothing to say.
type none struct{}

// body decodes the request's JSON into v. An empty body is an empty object.
func (c *call) body(v any) error {
	data, err := io.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxBody))
	if err != nil {
		return bad("the body: %v", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var r *refusal
		if errors.As(err, &r) {
			return r
		}
		return bad("the body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return bad("the body: more than one JSON value")
	}
	return nil
}

// query checks that no parameters are given but those allowed and server.
func (c *call) query(allowed []string) error {
	for _, name := range slices.Sorted(maps.Keys(c.r.URL.Query())) {
		if name != "server" && !slices.Contains(allowed, name) {
			return bad("unknown parameter %q; known are %s", name, strings.Join(append(slices.Clone(allowed), "server"), ", "))
		}
	}
	return nil
}

// param is a parameter of the query, "" without.
func (c *call) param(name string) string { return c.r.URL.Query().Get(name) }

// path is the parameter path.
func (c *call) path() (string, error) {
	path := c.param("path")
	return path, checkPath("path", path)
}

// checkPath says what is wrong with a path, of a field or parameter.
func checkPath(field, path string) error {
	if path == "" {
		return bad("%s is missing", field)
	}
	if err := proto.ValidatePath(path); err != nil {
		return bad("%s: %v", field, err)
	}
	return nil
}

// chosen is the server that the parameter server names, nil without one.
func (c *call) chosen() (*zktest.Server, error) {
	if !c.r.URL.Query().Has("server") {
		return nil, nil
	}
	return c.member(c.param("server"))
}

// member is the server with an id.
func (c *call) member(text string) (*zktest.Server, error) {
	id, err := strconv.Atoi(text)
	if err != nil {
		return nil, bad("server %q: want a number from 1 to %d", text, len(c.servers))
	}
	if id < 1 || id > len(c.servers) {
		return nil, missing("there is no server %d, only 1 to %d", id, len(c.servers))
	}
	return c.servers[id-1], nil
}

// one is the server to look at: the one chosen, or else the leader or, without
// one, the first that runs.
func (c *call) one() (*zktest.Server, error) {
	if s, err := c.chosen(); s != nil || err != nil {
		return s, err
	}
	if c.cluster == nil {
		return c.servers[0], nil
	}
	if lead := c.cluster.LeaderNow(); lead != nil {
		return lead, nil
	}
	return c.servers[max(slices.IndexFunc(c.servers, (*zktest.Server).Running), 0)], nil
}

// some are the servers that something concerns: the one chosen, or all.
func (c *call) some() ([]*zktest.Server, error) {
	if s, err := c.chosen(); s != nil || err != nil {
		return []*zktest.Server{s}, err
	}
	return c.servers, nil
}
