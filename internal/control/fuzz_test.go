package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzBody checks that we either parse a request body or reject it with an error for the
// caller, and that a parsed body survives encoding and parsing.
func FuzzBody(f *testing.F) {
	type body struct {
		Session sessionID `json:"session"`
		Wait    duration  `json:"wait"`
		Op      opName    `json:"op"`
	}
	f.Add(`{"session":"0x1f","wait":"1.5s","op":"getData"}`)
	f.Add(`{"session":-5,"wait":1e300}`)
	f.Add(`{"op":"nothing"} {}`)
	f.Fuzz(func(t *testing.T, text string) {
		var got body
		err := (&call{r: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))}).body(&got)
		if err != nil {
			if r := (*refusal)(nil); !errors.As(err, &r) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if got.Op == 0 {
			return // zero has no text form
		}
		out, err := json.Marshal(&got)
		if err != nil {
			t.Fatal(err)
		}
		var again body
		if err := (&call{r: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(out)))}).body(&again); err != nil || again != got {
			t.Fatalf("%s became %+v, %v", out, again, err)
		}
	})
}
