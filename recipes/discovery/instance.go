package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Type determines how long an instance stays registered.
type Type string

// The types, as Curator names them.
const (
	// Dynamic instances disappear with their program's session. Dynamic is the
	// default.
	Dynamic Type = "DYNAMIC"
	// Static and Permanent instances stay until they are unregistered.
	Static    Type = "STATIC"
	Permanent Type = "PERMANENT"
	// We can read DynamicSequential instances but not register them: the id in the name of
	// the znode differs from the id in its data.
	DynamicSequential Type = "DYNAMIC_SEQUENTIAL"
)

// Instance describes where a service can be reached. P is the type of the payload, in
// JSON.
type Instance[P any] struct {
	// Name is the name of the service.
	Name string
	// ID is unique among the instances of the service. If it is empty, Register
	// generates one.
	ID      string
	Address string // "" for none
	Port    *int   // nil for none, like SSLPort
	SSLPort *int
	Payload *P // nil for none
	// RegistrationTimeUTC is in milliseconds since the Unix epoch. If it is 0,
	// Register sets it.
	RegistrationTimeUTC int64
	Type                Type // Register treats "" as Dynamic
	URI                 URISpec
	// Disabled instances are registered, but clients should not choose them.
	Disabled bool
}

// Port returns n as a port for an [Instance].
func Port(n int) *int { return &n }

// URISpec is a template for the URI of an instance.
type URISpec []Part

// Part is a part of a URI: text, or the name of a variable.
type Part struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// ParseURISpec parses text with variables in braces, e.g.
// "{scheme}://{address}:{port}". The variables are scheme, name, id, address, port,
// ssl-port, registration-time-utc, service-type, and "[" and "]" for braces.
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

// BuildURI returns the URI of the instance, or "" without a [URISpec]. vars override
// and add variables. A variable without a value is omitted.
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

// wire is an instance in JSON. Its fields have Curator's order.
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

// MarshalJSON writes the instance in Curator's format.
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

// encode encodes JSON without escaping HTML, which is not needed here.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// UnmarshalJSON decodes JSON written by Curator or MarshalJSON. It ignores unknown
// fields.
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
