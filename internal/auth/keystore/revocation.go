package keystore

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/zkgo/zkgo/internal/auth/certs"
)

// revocation checks whether certificates were revoked, using the addresses in the
// certificates, like Java with ssl.crl and ssl.ocsp. If we can't determine the status of a
// certificate, we treat it as revoked. It is safe for concurrent use.
type revocation struct {
	ocsp   bool // query the responders first
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	lists map[string]*list // by address
}

// list is the newest CRL of one address. Its mutex is held during a fetch.
type list struct {
	mu    sync.Mutex
	crl   *x509.RevocationList // nil before the first fetch
	fresh time.Time            // no refetch before this time
}

// Limits of a fetch, for which a client waits.
const (
	fetchTimeout = 10 * time.Second
	maxFetched   = 32 << 20
	// listAge is the age at which a list is fetched again; the old one remains valid
	// until its own expiry.
	listAge = 5 * time.Minute
)

func newRevocation(ocsp bool) *revocation {
	return &revocation{
		ocsp: ocsp, now: time.Now, lists: make(map[string]*list),
		// We disable keep-alives, because no goroutine would close idle connections.
		client: &http.Client{Timeout: fetchTimeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
	}
}

// checking returns a load with configurations that reject revoked certificates.
func (o Options) checking(load func() (*tls.Config, error)) func() (*tls.Config, error) {
	if !o.CRL && !o.OCSP {
		return load
	}
	r := newRevocation(o.OCSP)
	return func() (*tls.Config, error) {
		c, err := load()
		if err == nil {
			c.VerifyConnection = r.verify
		}
		return c, err
	}
}

// verify is a tls.Config's VerifyConnection. One valid chain is enough.
func (r *revocation) verify(state tls.ConnectionState) error {
	var problem error
	for _, chain := range state.VerifiedChains {
		if problem = r.chain(chain); problem == nil {
			return nil
		}
	}
	return problem
}

// chain checks all certificates except for the trusted one at the end of the chain.
func (r *revocation) chain(chain []*x509.Certificate) error {
	for i := range len(chain) - 1 {
		if err := r.check(chain[i], chain[i+1]); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: chain[i:], Err: err}
		}
	}
	return nil
}

// check returns nil if c, signed by issuer, is known not to be revoked.
func (r *revocation) check(c, issuer *x509.Certificate) error {
	var problem error
	if r.ocsp {
		for _, url := range c.OCSPServer {
			err := r.ask(url, c, issuer)
			if err == nil || errors.Is(err, certs.ErrRevoked) {
				return err
			}
			problem = errors.Join(problem, err)
		}
	}
	for _, url := range c.CRLDistributionPoints {
		err := r.listed(url, c, issuer)
		if err == nil || errors.Is(err, certs.ErrRevoked) {
			return err
		}
		problem = errors.Join(problem, err)
	}
	if problem == nil {
		problem = errors.New("the certificate names no address for revocation checks")
	}
	return fmt.Errorf("%w: %w", certs.ErrUnchecked, problem)
}

// ask queries an OCSP responder.
func (r *revocation) ask(url string, c, issuer *x509.Certificate) error {
	question, err := ocsp.CreateRequest(c, issuer, nil)
	if err != nil {
		return err
	}
	b, err := r.fetch(http.MethodPost, url, question)
	if err != nil {
		return err
	}
	answer, err := ocsp.ParseResponseForCert(b, c, issuer)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", url, err)
	case !answer.NextUpdate.IsZero() && r.now().After(answer.NextUpdate):
		return fmt.Errorf("%s: its answer expired on %s", url, answer.NextUpdate.UTC().Format(time.RFC3339))
	case answer.Status == ocsp.Revoked:
		return fmt.Errorf("%w on %s, says %s", certs.ErrRevoked, answer.RevokedAt.UTC().Format(time.RFC3339), url)
	case answer.Status != ocsp.Good:
		return fmt.Errorf("%s does not know", url)
	}
	return nil
}

// listed looks c up in the CRL at url.
func (r *revocation) listed(url string, c, issuer *x509.Certificate) error {
	r.mu.Lock()
	l := r.lists[url]
	if l == nil {
		l = &list{}
		r.lists[url] = l
	}
	r.mu.Unlock()
	crl, err := r.newest(l, url)
	if err != nil {
		return err
	}
	if err := crl.CheckSignatureFrom(issuer); err != nil {
		return fmt.Errorf("%s: the list is not signed by %s: %w", url, issuer.Subject, err)
	}
	for i := range crl.RevokedCertificateEntries {
		if e := &crl.RevokedCertificateEntries[i]; e.SerialNumber.Cmp(c.SerialNumber) == 0 {
			return fmt.Errorf("%w on %s, says %s", certs.ErrRevoked, e.RevocationTime.UTC().Format(time.RFC3339), url)
		}
	}
	return nil
}

// newest returns a list that hasn't expired. It fetches a missing or old list. If the fetch
// fails, we use an old list until it expires.
func (r *revocation) newest(l *list, url string) (*x509.RevocationList, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := r.now()
	var problem error
	if l.crl == nil || now.After(l.fresh) {
		var crl *x509.RevocationList
		if crl, problem = r.fetchList(url); problem == nil {
			l.crl, l.fresh = crl, now.Add(listAge)
		}
	}
	switch {
	case l.crl == nil:
		return nil, problem
	case !l.crl.NextUpdate.IsZero() && now.After(l.crl.NextUpdate):
		l.fresh = time.Time{}
		return nil, errors.Join(fmt.Errorf("%s: the list expired on %s", url, l.crl.NextUpdate.UTC().Format(time.RFC3339)), problem)
	}
	return l.crl, nil
}

func (r *revocation) fetchList(url string) (*x509.RevocationList, error) {
	b, err := r.fetch(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(b); block != nil {
		b = block.Bytes
	}
	crl, err := x509.ParseRevocationList(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return crl, nil
}

// fetch returns the content at url.
func (r *revocation) fetch(method, url string, body []byte) ([]byte, error) {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, fmt.Errorf("%s: only http and https are asked", url)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/ocsp-request")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err // it includes the address
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched+1))
	if err == nil && len(b) > maxFetched {
		err = fmt.Errorf("more than %d bytes", maxFetched)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return b, nil
}
