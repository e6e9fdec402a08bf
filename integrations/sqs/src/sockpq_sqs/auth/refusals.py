"""The errors of requests whose sender is not known, as AWS answers them."""

from __future__ import annotations

from sockpq_sqs.model.errors import SqsError


def unsigned() -> SqsError:
    """Return the error for a request without a signature."""
    return SqsError(
        "MissingAuthenticationTokenException", "Request is missing Authentication Token", 403,
        "MissingAuthenticationToken")


def incomplete(message: str) -> SqsError:
    """Return the error for a signature that is not in the form of signature version 4."""
    return SqsError("IncompleteSignatureException", message, 400, "IncompleteSignature")


def unknown_key() -> SqsError:
    """Return the error for an access key that no user has, and for tokens of sessions, which do not exist here."""
    return SqsError(
        "UnrecognizedClientException", "The security token included in the request is invalid.", 403,
        "InvalidClientTokenId")


def wrong_signature() -> SqsError:
    """Return the error for a signature that does not belong to the request."""
    return SqsError(
        "InvalidSignatureException", "The request signature we calculated does not match the signature you provided. "
        "Check your AWS Secret Access Key and signing method. Consult the service documentation for details.", 403,
        "SignatureDoesNotMatch")


def not_now(message: str) -> SqsError:
    """Return the error for a request that was signed too long ago, or for a time to come."""
    return SqsError("RequestExpired", message, 400)


def foreign_page() -> SqsError:
    """Return the error for a request of a web page, where requests need no signature."""
    return SqsError(
        "AccessDeniedException", "Without users no request of a web page is accepted: name a users file.", 403)
