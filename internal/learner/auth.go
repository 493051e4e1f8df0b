package learner

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/internal/zab"
)

// authenticate logs in with DIGEST-MD5, like SaslQuorumAuthLearner.
func (c *Conn) authenticate(user, password string) error {
	client := sasl.NewLearnerClient(user, password)
	token, _, err := client.Next(nil)
	for err == nil {
		if err := c.sendToken(token); err != nil {
			return err
		}
		status, answer, err := c.readToken()
		if err != nil {
			return err
		}
		if status != zab.AuthInProgress && status != zab.AuthSuccess {
			return fmt.Errorf("%w for user %q: %w", sasl.ErrRefused, user, ErrLogin)
		}
		next, done, err := client.Next(answer)
		switch {
		case err != nil:
			return err
		case done && status == zab.AuthSuccess:
			return nil
		case done || status == zab.AuthSuccess:
			return errors.New("the server ended the SASL exchange too early")
		}
		token = next
	}
	return err
}

func (c *Conn) sendToken(token []byte) error {
	return c.write(zab.AppendToken(c.out[:0], zab.AuthInProgress, token))
}

func (c *Conn) readToken() (status int32, token []byte, err error) {
	status, token, err = zab.ReadToken(c.r)
	if ended(err) {
		return 0, nil, fmt.Errorf("%w (%w)", ErrNoLogin, err)
	}
	var none *zab.NoTokenError
	if errors.As(err, &none) {
		err = fmt.Errorf("%w (magic %#x)", ErrNoLogin, none.Magic)
	}
	return status, token, err
}
