package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// kind says what sort of error an answer is.
type kind string

// The kinds of error.
const (
	badRequest kind = "badRequest" // the request makes no sense
	notFound   kind = "notFound"   // what it names does not exist
	notAllowed kind = "methodNotAllowed"
	failed     kind = "failed"  // it cannot be done as things stand
	timeout    kind = "timeout" // what was waited for did not come
)

// refusal is an error as the caller gets it.
type refusal struct {
	kind kind
	text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// bad says what is wrong with a request.
func bad(format string, args ...any) error {
	return &refusal{kind: badRequest, text: fmt.Sprintf(format, args...)}
}

// missing says what does not exist.
func missing(format string, args ...any) error {
	return &refusal{kind: notFound, text: fmt.Sprintf(format, args...)}
}

// status is the HTTP status of a kind.
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

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	r := &refusal{kind: failed, text: err.Error()}
	errors.As(err, &r)
	answer(w, r.kind.status(), map[string]string{"kind": string(r.kind), "error": r.text})
}

// answer writes one JSON value.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil { // of values that this package made
		status, body = http.StatusInternalServerError, []byte(`{"kind":"failed","error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a caller that has gone misses nothing
}
