package admin

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// Access is the result of Authorize.
type Access int

// The results of Authorize.
const (
	Unknown Access = iota // the caller isn't authenticated
	Denied
	Granted
)

// Authorizer decides which callers may change the server and read what clients store.
type Authorizer interface {
	// Authorize reports whether the sender of r is an administrator. scheme and auth have
	// the meaning of an auth packet.
	Authorize(r *http.Request, scheme, auth string) Access
}

// The texts for callers that the guard refuses. They begin with ZooKeeper's.
const (
	errMissing = "Auth info is missing for the command: send the header Authorization: digest USER:PASSWORD, e.g. by curl -u USER:PASSWORD"
	errUnknown = "Not authenticated: the schemes are digest, basic, which means the same, and x509"
	errDenied  = "Not authorized: requires the super user (DigestAuthenticationProvider.superDigest), or an identity with all permissions in the ACL of /; world and ip do not count"
)

// guard refuses callers of commands that change the server or reveal what clients store.
type guard struct {
	src  Authorizer
	opts *Options
}

// access authenticates the sender of a request that has an Authorization header.
func (g *guard) access(r *http.Request) Access {
	scheme, auth, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	scheme, auth = strings.ToLower(scheme), strings.TrimSpace(auth)
	if user, password, ok := r.BasicAuth(); ok {
		scheme, auth = "digest", user+":"+password
	}
	return g.src.Authorize(r, scheme, auth)
}

// trusts reports whether the sender of r is an administrator.
func (g *guard) trusts(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" && !crossSite(r) && g.access(r) == Granted
}

// crossSite reports whether a page of another site makes a browser send r, with the
// credentials that the browser has for this server.
func crossSite(r *http.Request) bool {
	return !slices.Contains([]string{"", "none", "same-origin"}, r.Header.Get("Sec-Fetch-Site"))
}

// admits rejects callers that aren't administrators. As in ZooKeeper, the reply contains the
// command name that the caller used.
func (g *guard) admits(w http.ResponseWriter, r *http.Request) bool {
	name := path.Base(r.URL.Path)
	if r.Header.Get("Authorization") == "" {
		g.refused(r, name, "it has no Authorization header")
		unauthorized(w, name, errMissing)
		return false
	}
	if crossSite(r) {
		g.refused(r, name, "it comes from a page of another site")
		reply(w, http.StatusForbidden, name, nil, "Not authorized: the request comes from a page of another site")
		return false
	}
	switch g.access(r) {
	case Granted:
		return true
	case Denied:
		g.refused(r, name, "the caller is not an administrator")
		reply(w, http.StatusForbidden, name, nil, errDenied)
	default:
		unauthorized(w, name, errUnknown)
	}
	return false
}

func unauthorized(w http.ResponseWriter, name, problem string) {
	w.Header().Set("WWW-Authenticate", `Basic realm="zkgo", charset="UTF-8"`)
	reply(w, http.StatusUnauthorized, name, nil, problem)
}

// refused reports a command that is refused.
func (g *guard) refused(r *http.Request, command, reason string) {
	if g.opts.Refused != nil {
		g.opts.Refused(r, command, reason)
	}
}

// administrators returns a handler that serves only administrators.
func (g *guard) administrators(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.admits(w, r) {
			h(w, r)
		}
	}
}

// withoutNames is a source with metrics that don't contain the names of znodes.
type withoutNames struct{ Source }

// Metrics implements status.Source.
func (s withoutNames) Metrics() []status.Metric {
	return slices.DeleteFunc(slices.Clone(s.Source.Metrics()), func(m status.Metric) bool {
		return strings.HasSuffix(m.Name, "_per_namespace")
	})
}
