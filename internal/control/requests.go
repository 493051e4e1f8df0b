package control

import (
	"cmp"
	"slices"

	"github.com/zkgo/zkgo/server/zktest"
)

// request is the JSON form of a request and how often it was received.
type request struct {
	Op      string    `json:"op"`
	Path    string    `json:"path,omitempty"`
	Session sessionID `json:"session"`
	Count   int       `json:"count"`
}

// filter reads the parameters op, path and session.
func (c *call) filter() (m match, err error) {
	if op := c.param("op"); op != "" {
		if m.Op, err = parseOp(op); err != nil {
			return m, err
		}
	}
	if id := c.param("session"); id != "" {
		if m.Session, err = parseSession(id); err != nil {
			return m, err
		}
	}
	m.Path = c.param("path")
	return m, nil
}

func getRequests(c *call) (any, error) {
	m, err := c.filter()
	if err != nil {
		return nil, err
	}
	servers, err := c.some()
	if err != nil {
		return nil, err
	}
	counts := make(map[zktest.Request]int)
	for _, s := range servers {
		for r, n := range s.RequestCounts() {
			if m.zktest(0).Means(r) {
				counts[r] += n
			}
		}
	}
	list, sum := []request{}, 0
	for r, n := range counts {
		list = append(list, request{r.Op.String(), r.Path, sessionID(r.Session), n})
		sum += n
	}
	slices.SortFunc(list, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Session, b.Session))
	})
	return map[string]any{"count": sum, "requests": list}, nil
}

func deleteRequests(c *call) (any, error) {
	servers, err := c.some()
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		s.ForgetRequests()
	}
	return none{}, nil
}
