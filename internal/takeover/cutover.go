package takeover

import (
	"encoding/json"
	"net/http"
)

// CutoverOptions say how to take over.
type CutoverOptions struct {
	DryRun bool `json:"dryRun"` // check everything, change nothing
}

// cutover takes over from the ensemble.
func (c *control) cutover(w http.ResponseWriter, r *http.Request) {
	var o CutoverOptions
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&o); err != nil {
		c.reply(w, nil, err)
		return
	}
	_, _, zxid := c.n.Mirroring().State()
	err := c.n.Mirroring().End(r.Context(), zxid)
	c.reply(w, c.m.StatusOf(c.n), err)
}
