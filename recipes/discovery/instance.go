package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Type says how long an instance stays registered.
type Type string

// The types, as Curator names them.
const (
	// Dynamic goes with its program's session. It is the default.
	Dynamic Type = "DYNAMIC"
	// Static and Permanent stay until they are unregistered.
	Static    Type = "STATIC"
	Permanent Type = "PERMANENT"
	// DynamicSequential is read, but cannot be registered here: the id that its
	// znode gets is not the one that it tells.
	DynamicSequential Type = "DYNAMIC_SEQUENTIAL"
)

// Instance is where a service can be reached. P is the type of what else is told
// about it, in JSON.
type Instance[P any] struct {
	// Name of the service.
	Name string
	// ID is unique among the instances of the service. Register makes one up if it
	// is empty.
	ID      string
	Address string // "" for none
	Port    *int   // nil for none, as SSLPort
	SSLPort *int
	Payload *P // nil for none
	// RegistrationTimeUTC is in milliseconds since the Unix epoch. Register sets it if
	// it is 0.
	RegistrationTimeUTC int64
	Type                Type // Register takes "" for Dynamic
	URI                 URISpec
	// Disabled instances are registered, but not to be chosen.
	Disabled bool
}

// Port returns a port for an [Instance].
func Port(n int) *int { return &n }

// URISpec is how the URI of an instance is made.
type URISpec []Part

// Part is a part of a URI: text, or the name of a variable.
type Part struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// ParseURISpec parses text with variables in braces, as "{scheme}://{address}:{port}".
// The variables are scheme, name, id, address, port, ssl-port,
// registration-time-utc, service-type, and "[" and "]" for braces.
func ParseURISpec(text string) (spec URISpec, err error) {
	for text != "" {
		before, rest, open := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return nil, fmt.Errorf("URI specification: %q closes no brace", before)
		}
		if before != "" {
			spec = append(spec, Part{Value: before})
		}
		if !open {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || strings.Contains(name, "{") {
			return nil, fmt.Errorf("URI specification: {%s is not closed", rest)
		}
		spec = append(spec, Part{Value: strings.TrimSpace(name), Variable: true})
		text = after
	}
	return spec, nil
}

// BuildURI returns the URI of the instance, "" without a [URISpec]. vars replace and
// add variables. One that has no value is left out.
func (i Instance[P]) BuildURI(vars map[string]string) string {
	var b strings.Builder
	for _, p := range i.URI {
		if !p.Variable {
			b.WriteString(p.Value)
		} else if v, given := vars[p.Value]; given {
			b.WriteString(v)
		} else {
			b.WriteString(i.variable(p.Value))
		}
	}
	return b.String()
}

func (i Instance[P]) variable(name string) string {
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return fmt.Sprint(*n)
	}
	switch name {
	case "scheme":
		if i.SSLPort != nil {
			return "https"
		}
		return "http"
	case "name":
		return i.Name
	case "id":
		return i.ID
	case "address":
		return i.Address
	case "port":
		return number(i.Port)
	case "ssl-port":
		return number(i.SSLPort)
	case "registration-time-utc":
		return fmt.Sprint(i.RegistrationTimeUTC)
	case "service-type":
		return strings.ToLower(string(i.Type))
	case "[":
		return "{"
	case "]":
		return "}"
	}
	return ""
}

// wire is an instance in JSON, in the order of fields in which Curator writes them.
type wire[P any] struct {
	Name    string   `json:"name"`
	ID      string   `json:"id"`
	Address *string  `json:"address"`
	Port    *int     `json:"port"`
	SSLPort *int     `json:"sslPort"`
	Payload *P       `json:"payload"`
	Time    int64    `json:"registrationTimeUTC"`
	Type    Type     `json:"serviceType"`
	URI     *uriWire `json:"uriSpec"`
	Enabled *bool    `json:"enabled,omitempty"`
}

type uriWire struct {
	Parts URISpec `json:"parts"`
}

// MarshalJSON writes the instance as Curator does.
func (i Instance[P]) MarshalJSON() ([]byte, error) {
	w := wire[P]{
		Name: i.Name, ID: i.ID, Port: i.Port, SSLPort: i.SSLPort, Payload: i.Payload,
		Time: i.RegistrationTimeUTC, Type: i.Type,
	}
	if i.Address != "" {
		w.Address = &i.Address
	}
	if i.URI != nil {
		w.URI = &uriWire{i.URI}
	}
	if i.Disabled {
		w.Enabled = new(bool)
	}
	return encode(w)
}

// encode writes JSON without escapes for HTML, which nobody needs here.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON reads what Curator or MarshalJSON has written. Unknown fields are
// ignored.
func (i *Instance[P]) UnmarshalJSON(data []byte) error {
	w := wire[P]{Type: Dynamic}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*i = Instance[P]{
		Name: w.Name, ID: w.ID, Port: w.Port, SSLPort: w.SSLPort, Payload: w.Payload,
		RegistrationTimeUTC: w.Time, Type: w.Type, Disabled: w.Enabled != nil && !*w.Enabled,
	}
	if w.Address != nil {
		i.Address = *w.Address
	}
	if w.URI != nil {
		i.URI = w.URI.Parts
	}
	return nil
}
