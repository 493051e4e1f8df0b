package httpport

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	user, token := Credentials{User: "prometheus", Password: "pw"}, Credentials{Token: "t0ken"}
	both := Credentials{User: "prometheus", Password: "pw", Token: "t0ken"}
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(text string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", text) }
	}
	for _, tc := range []struct {
		name string
		c    Credentials
		set  func(*http.Request)
		code int
	}{
		{"nothing required", Credentials{}, header(""), 200},
		{"no header", user, header(""), 401},
		{"user", user, basic("prometheus", "pw"), 200},
		{"wrong password", user, basic("prometheus", "no"), 401},
		{"wrong user", user, basic("", "pw"), 401},
		{"a token instead", user, header("Bearer pw"), 401},
		{"an empty token", user, header("Bearer "), 401},
		{"token", token, header("Bearer t0ken"), 200},
		{"another case of the scheme", token, header("bearer t0ken"), 200},
		{"wrong token", token, header("Bearer t0ke"), 401},
		{"an empty user instead", token, basic("", ""), 401},
		{"user of two", both, basic("prometheus", "pw"), 200},
		{"token of two", both, header("Bearer t0ken"), 200},
		{"neither of two", both, header("Digest t0ken"), 401},
	} {
		refused := 0
		h := tc.c.Require(http.NotFoundHandler(), func(*http.Request) { refused++ })
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		tc.set(r)
		h.ServeHTTP(w, r)
		served := w.Code == http.StatusNotFound
		if served != (tc.code == 200) || served != (refused == 0) || !served && w.Code != tc.code {
			t.Errorf("%s: %d, %d refusals reported", tc.name, w.Code, refused)
		}
		if asks := strings.Join(w.Header().Values("WWW-Authenticate"), " "); !served &&
			(strings.Contains(asks, "Basic") != (tc.c.User != "") || strings.Contains(asks, "Bearer") != (tc.c.Token != "")) {
			t.Errorf("%s: asks for %q", tc.name, asks)
		}
	}
}
