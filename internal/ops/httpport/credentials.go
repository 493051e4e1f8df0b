package httpport

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Credentials are the credentials that a port requires: for basic authentication, for bearer
// authentication, or for either. The zero value requires no credentials.
type Credentials struct {
	User, Password string // for basic authentication, if User is set
	Token          string // for bearer authentication, if set
}

// Require returns h for callers that have the credentials. refused is called for the others.
func (c Credentials) Require(h http.Handler, refused func(r *http.Request)) http.Handler {
	if c.User == "" && c.Token == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.match(r) {
			h.ServeHTTP(w, r)
			return
		}
		refused(r)
		if c.User != "" {
			w.Header().Add("WWW-Authenticate", `Basic realm="zkgo", charset="UTF-8"`)
		}
		if c.Token != "" {
			w.Header().Add("WWW-Authenticate", `Bearer realm="zkgo"`)
		}
		http.Error(w, "this port requires credentials", http.StatusUnauthorized)
	})
}

// match reports whether a request has the credentials.
func (c Credentials) match(r *http.Request) bool {
	if user, password, ok := r.BasicAuth(); ok {
		// We make both comparisons, so that the time doesn't reveal whether the user exists.
		right := same(user, c.User) & same(password, c.Password)
		return c.User != "" && right == 1
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return c.Token != "" && strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(token), c.Token) == 1
}

// same compares two texts in constant time.
func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}
