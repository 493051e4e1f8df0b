package discovery

import (
	"encoding/json"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// FuzzInstance decodes instances that other programs have registered. If we encode a
// decoded instance, it should decode to the same instance.
func FuzzInstance(f *testing.F) {
	f.Add([]byte(`{"name":"a","id":"b","address":"h","port":1,"sslPort":null,"payload":{"x":1},"registrationTimeUTC":5,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"x","variable":true}]},"enabled":false}`))
	f.Add([]byte(`{"uriSpec":{"parts":null},"address":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var i, again Instance[map[string]any]
		if json.Unmarshal(b, &i) != nil {
			return
		}
		first := must.Get(json.Marshal(&i))(t)
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := json.Marshal(&again); err != nil || string(second) != string(first) {
			t.Fatalf("%s became %s, %v", first, second, err)
		}
	})
}

// FuzzURISpec parses the text of URIs with variables. If we format a parsed specification,
// it should parse to the same specification.
func FuzzURISpec(f *testing.F) {
	f.Add("{scheme}://{address}:{port}/x")
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := ParseURISpec(text)
		if err != nil {
			return
		}
		must.Get(json.Marshal(spec))(t)
	})
}
