package zkfiles

import "github.com/zkgo/zkgo/internal/zktxn"

// The types of package zktxn.
type (
	// Header is zktxn.Header.
	Header = zktxn.Header
	// Txn is zktxn.Txn.
	Txn = zktxn.Txn
	// Digest is zktxn.Digest.
	Digest = zktxn.Digest
	// CreateTxn is zktxn.CreateTxn.
	CreateTxn = zktxn.CreateTxn
	// DeleteTxn is zktxn.DeleteTxn.
	DeleteTxn = zktxn.DeleteTxn
	// SetDataTxn is zktxn.SetDataTxn.
	SetDataTxn = zktxn.SetDataTxn
	// SetACLTxn is zktxn.SetACLTxn.
	SetACLTxn = zktxn.SetACLTxn
	// CheckTxn is zktxn.CheckTxn.
	CheckTxn = zktxn.CheckTxn
	// CreateSessionTxn is zktxn.CreateSessionTxn.
	CreateSessionTxn = zktxn.CreateSessionTxn
	// CloseSessionTxn is zktxn.CloseSessionTxn.
	CloseSessionTxn = zktxn.CloseSessionTxn
	// ErrorTxn is zktxn.ErrorTxn.
	ErrorTxn = zktxn.ErrorTxn
	// MultiTxn is zktxn.MultiTxn.
	MultiTxn = zktxn.MultiTxn
	// MultiOp is zktxn.MultiOp.
	MultiOp = zktxn.MultiOp
)

// DecodeTxn is zktxn.Decode.
func DecodeTxn(payload []byte) (*Txn, error) { return zktxn.Decode(payload) }

// Password is zktxn.Password.
func Password(session int64) [16]byte { return zktxn.Password(session) }
