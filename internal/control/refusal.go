package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// kind classifies an error response.
type kind string

// The kinds of error.
const (
	badRequest kind = "badRequest" // the request is invalid
	notFound   kind = "notFound"   // an object that the request names doesn't exist
	notAllowed kind = "methodNotAllowed"
	failed     kind = "failed"  // the operation is impossible in the current state
	timeout    kind = "timeout" // the awaited condition didn't become true in time
)

// refusal is an error as it is sent to the caller.
type refusal struct {
	kind kind
	text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// bad returns an error for an invalid request.
func bad(format string, args ...any) error {
	return &refusal{kind: badRequest, text: fmt.Sprintf(format, args...)}
}

// missing returns an error for an object that doesn't exist.
func missing(format string, args ...any) error {
	return &refusal{kind: notFound, text: fmt.Sprintf(format, args...)}
}

// status returns the HTTP status of a kind.
func (k kind) status() int {
	switch k {
	case badRequest:
		return http.StatusBadRequest
	case notFound:
		return http.StatusNotFound
	case notAllowed:
		return http.StatusMethodNotAllowed
	case timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusConflict
}

// refuse writes an error response.
func refuse(w http.ResponseWriter, err error) {
	r := &refusal{kind: failed, text: err.Error()}
	errors.As(err, &r)
	answer(w, r.kind.status(), map[string]string{"kind": string(r.kind), "error": r.text})
}

// answer writes one JSON value.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil { // impossible: this package built the value
		status, body = http.StatusInternalServerError, []byte(`{"kind":"failed","error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a write error only means that the caller is gone
}
