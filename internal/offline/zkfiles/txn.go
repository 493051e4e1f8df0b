package zkfiles

import "github.com/zkgo/zkgo/internal/zktxn"

// What a log holds is described in package zktxn.

type (
	Header           = zktxn.Header
	Txn              = zktxn.Txn
	Digest           = zktxn.Digest
	CreateTxn        = zktxn.CreateTxn
	DeleteTxn        = zktxn.DeleteTxn
	SetDataTxn       = zktxn.SetDataTxn
	SetACLTxn        = zktxn.SetACLTxn
	CheckTxn         = zktxn.CheckTxn
	CreateSessionTxn = zktxn.CreateSessionTxn
	CloseSessionTxn  = zktxn.CloseSessionTxn
	ErrorTxn         = zktxn.ErrorTxn
	MultiTxn         = zktxn.MultiTxn
	MultiOp          = zktxn.MultiOp
)

// DecodeTxn is zktxn.Decode.
func DecodeTxn(payload []byte) (*Txn, error) { return zktxn.Decode(payload) }

// Password is zktxn.Password.
func Password(session int64) [16]byte { return zktxn.Password(session) }
