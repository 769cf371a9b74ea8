// SPDX-License-Identifier: Apache-2.0

package faults

// A bug that several rows must notice.
const (
	neverOpens = `r.failed() && (t.outcomes >= enough && t.bad(c.settings) || c.unreachable(now))`
	deadline   = `t = max(0, t-max(minSlack, t/slackDivisor))`
	capped     = `context.WithTimeout(context.Background(), min(timeout, e.dialer.timeout))`
	uncapped   = `context.WithTimeout(context.Background(), timeout)`
	spared     = `		r.finish(ending{err: r.nobody()})
		return
	}
	r.parts.Add(1)`
	bypassing = `	if rule, ok := bypass(req); ok {
		return`
)

// mutants are the bugs that the rows must notice, in the order of the rows.
var mutants = []mutant{
	{row: "F1", bug: "no circuit ever opens", file: "breaker/state.go", old: neverOpens, new: "false && " + neverOpens, says: "calls failed, at most 70.0 % may"},
	{row: "F1", bug: "60 ms pass before an open circuit is noticed", file: "webhook/race.go", old: spared, new: "		time.Sleep(60 * time.Millisecond)\n" + spared,
		says: "answers come late from 1s on"},
	{row: "F1", bug: "60 ms pass before a refused connection is noticed", file: "webhook/endpoint.go", old: `		return nil, &dialError{stage: "connect"`,
		new: `		time.Sleep(60 * time.Millisecond)` + "\n" + `		return nil, &dialError{stage: "connect"`, says: "answers come late under the fault"},
	{row: "F2", bug: "an attempt that nobody got is not repeated elsewhere", file: "webhook/repeat.go", old: "	case end.unsent && r.others():\n		return true",
		new: "	case end.unsent && r.others():\n		return false", says: "(Unreachable)"},
	{row: "F2", bug: "60 ms pass before an Endpoint with an open circuit is passed over", file: "breaker/breaker.go",
		old: "	defer b.mu.Unlock()\n	return b.ask(cluster, resource, now)",
		new: "	t, ok := b.ask(cluster, resource, now)\n	b.mu.Unlock()\n	if !ok {\n		time.Sleep(60 * time.Millisecond)\n	}\n	return t, ok", says: "answers come late under the fault"},
	{row: "F3", bug: "no circuit ever opens", file: "breaker/state.go", old: neverOpens, new: "false && " + neverOpens, says: "calls failed, at most 30.0 % may"},
	{row: "F3", bug: "a connection may take as long as a call", file: "webhook/endpoint.go", old: capped, new: uncapped, says: "answers come late under the fault"},
	{row: "F4", bug: "a connection may take as long as a call, and is not counted as under way", file: "webhook/endpoint.go",
		old: "	ctx, cancel := " + capped, new: "	e.outstanding.Add(-1)\n	defer e.outstanding.Add(1)\n	ctx, cancel := " + uncapped, says: "(Timeout)"},
	{row: "F5", bug: "a connection without a handshake is not closed", file: "webhook/endpoint.go", old: "	if err := secured.HandshakeContext(ctx); err != nil {\n		_ = raw.Close()",
		new:  "	_ = raw.SetDeadline(time.Now().Add(min(timeout, e.dialer.timeout)))\n	if err := secured.Handshake(); err != nil {\n		time.AfterFunc(time.Hour, func() { _ = raw.Close() })",
		says: "descriptors are open"},
	{row: "F5", bug: "no circuit ever opens", file: "breaker/state.go", old: neverOpens, new: "false && " + neverOpens, says: "calls failed, at most 30.0 % may"},
	{row: "F6/expired", bug: "certificates may have expired", file: "webhook/endpoint.go", old: "	secured := tls.Client(plain, e.origin.tls)",
		new: `	config := e.origin.tls.Clone()
	config.Time = func() time.Time { return time.Now().Add(-2 * time.Minute) }
	secured := tls.Client(plain, config)`, says: "reviews have arrived"},
	{row: "F6/other-authority", bug: "certificates are not verified", file: "webhook/origin.go", old: "		DynamicRecordSizingDisabled: true,",
		new: "		DynamicRecordSizingDisabled: true,\n		InsecureSkipVerify: true,", says: "reviews have arrived"},
	{row: "F6/wrong-name", bug: "names are not verified", file: "webhook/origin.go", old: "		if !cfg.RootCAs.AppendCertsFromPEM(bundle) {",
		new: `		roots := cfg.RootCAs
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = func(s tls.ConnectionState) error {
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err
		}
		if !cfg.RootCAs.AppendCertsFromPEM(bundle) {`, says: "reviews have arrived"},
	{row: "F6/expired", bug: "60 ms pass before an open circuit is noticed", file: "webhook/race.go", old: spared, new: "		time.Sleep(60 * time.Millisecond)\n" + spared,
		says: "answers come late under the fault"},
	{row: "F7", bug: "a webhook has the time of the admission", file: "dispatcher/share.go", old: "now.Add(min(full, left-reserve(left, following)))",
		new: "now.Add(left-reserve(left, following))", says: "the webhooks had 1s"},
	{row: "F16", bug: "redirects are followed", file: "webhook/attempt.go", old: "	*req = request{} // it has borrowed",
		new: `	if answer.StatusCode() == fasthttp.StatusTemporaryRedirect {
		elsewhere := head{line: "POST /elsewhere?timeout=", fields: req.head.fields}
		req.head = &elsewhere
		err = e.exchange(req, answer, &chosen.ticket, call.Deadline, fresh)
	}
	*req = request{} // it has borrowed`, says: "have followed a redirect"},
	{row: "F17/each", bug: "an answer with status 422 is read", file: "webhook/answer.go", old: "	case !isSuccess(status):", new: "	case !isSuccess(status) && status != 422:", says: "wrong-allow"},
	{row: "F17/each", bug: "60 ms pass before an HTTP error is noticed", file: "webhook/try.go", old: "	if end.pause > 0 {",
		new: "	if end.status >= 400 {\n		time.Sleep(60 * time.Millisecond)\n	}\n	if end.pause > 0 {", says: "answers come late under the fault"},
	{row: "F17/open", bug: "one failure in a thousand opens a circuit", file: "breaker/settings.go", old: "positive(s.FailureRatio, 0.5)", new: "positive(s.FailureRatio, 0.001)",
		says: "no fault excuses the open breaker"},
	{row: "F20", bug: "no circuit ever opens", file: "breaker/window.go",
		old: "return t.failures > 0 && ", new: "return false && t.failures > 0 && ", says: "wait at a time"},
	{row: "F22/Ignore", bug: "a failed webhook ends the chain", file: "dispatcher/mutate.go", old: "		if a.settle(o).Denies() {",
		new: "		if a.settle(o).Denies() || o.Cause != \"\" {", says: "gave no usable answer, and nothing is said about it"},
	{row: "F22/Fail", bug: "the chain goes on after a failed webhook", file: "dispatcher/mutate.go", old: "		if a.settle(o).Denies() {",
		new: "		if a.settle(o).Denies() && o.Cause == \"\" {", says: "had its turn after a denial"},
	{row: "F23", bug: "a webhook for which no time is left allows", file: "dispatcher/policy.go", old: "		o.Result, o.Cause, o.Code = Failed, callErr.Cause, callErr.Cause.Code()",
		new:  "		o.Result, o.Cause, o.Code = Failed, callErr.Cause, callErr.Cause.Code()\n		if callErr.Cause == webhook.NoTimeLeft {\n			o.Result, o.Err = Allowed, nil\n		}",
		says: "wrong-allow"},
	{row: "F25", bug: "answers may come 250 ms after the caller has given up", file: "internal/server/deadline.go", old: deadline, new: "t += 250 * time.Millisecond", says: "answers come late under the fault"},
	{row: "F25", bug: "the deadline is that of the caller", file: "internal/server/deadline.go", old: deadline, new: "t -= 10 * time.Millisecond", says: "the deadline was 2.85s"},
	{row: "F37/F1", bug: "60 ms pass before a bypass", file: "dispatcher/dispatcher.go", old: bypassing, new: "	if rule, ok := bypass(req); ok {\n		time.Sleep(60 * time.Millisecond)\n		return",
		says: "answers come late without a fault"},
	{row: "F37/F3", bug: "node heartbeats are dispatched", file: "match/request_rule.go", old: `Resources: []string{"/nodes/status"}, Operations`, new: `Resources: []string{"/nodes/proxy"}, Operations`,
		says: "exempt, and"},
	{row: "F37/F27", bug: "what is exempt takes a place of its cluster", file: "dispatcher/dispatcher.go", old: bypassing,
		new: `	if rule, ok := bypass(req); ok {
		a := d.newAdmission(ctx, req)
		defer d.release(a)
		defer a.dismiss()
		if err := a.admit(); err != nil {
			return panicked()
		}
		return`, says: "exempt, and denied"},
}
