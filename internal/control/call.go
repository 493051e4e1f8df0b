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

// maxBody is the maximum size of a request body.
const maxBody = 64 << 20

// call is one request to an endpoint.
type call struct {
	*TestServer
	r *http.Request
}

// none is the result of endpoints that return no data.
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

// query rejects all query parameters except server and the allowed ones.
func (c *call) query(allowed []string) error {
	for _, name := range slices.Sorted(maps.Keys(c.r.URL.Query())) {
		if name != "server" && !slices.Contains(allowed, name) {
			return bad("unknown parameter %q; want %s", name, strings.Join(append(slices.Clone(allowed), "server"), ", "))
		}
	}
	return nil
}

// param returns a query parameter, or "" if it's missing.
func (c *call) param(name string) string { return c.r.URL.Query().Get(name) }

// path returns the path parameter.
func (c *call) path() (string, error) {
	path := c.param("path")
	return path, checkPath("path", path)
}

// checkPath returns an error if path, the value of the named field or parameter, is invalid.
func checkPath(field, path string) error {
	if path == "" {
		return bad("%s is missing", field)
	}
	if err := proto.ValidatePath(path); err != nil {
		return bad("%s: %v", field, err)
	}
	return nil
}

// chosen returns the server that the server parameter names, or nil if there is no
// parameter.
func (c *call) chosen() (*zktest.Server, error) {
	if !c.r.URL.Query().Has("server") {
		return nil, nil
	}
	return c.member(c.param("server"))
}

// member returns the server with the given id.
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

// one returns the server to inspect: the chosen one, otherwise the leader, or if there is
// no leader, the first server that runs.
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

// some returns the servers that a call applies to: the chosen one, or all.
func (c *call) some() ([]*zktest.Server, error) {
	if s, err := c.chosen(); s != nil || err != nil {
		return []*zktest.Server{s}, err
	}
	return c.servers, nil
}
