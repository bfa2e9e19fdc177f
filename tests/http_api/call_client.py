"""A program against a generated client: remember, recall, an error, and no token."""

import sys

from generated import AuthenticatedClient
from generated.api.default import get, recall, recall_by_url, remember
from generated.models import Acknowledged, Error, Get, Recall, Recalled, Remember

url, token = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token) as client:
    kept = remember.sync(client=client, body=Remember(content="tea at four"))
    assert isinstance(kept, Acknowledged), kept
    for found in (
        recall.sync(client=client, body=Recall(query="tea")),
        recall_by_url.sync(client=client, query="tea", limit=3),
    ):
        assert isinstance(found, Recalled), found
        assert [hit.id for hit in found.hits] == [kept.id]
    missing = get.sync(client=client, body=Get(id="nobody"))
    assert isinstance(missing, Error), missing
    assert missing.error.code.value == "not_found"
with AuthenticatedClient(base_url=url, token="wrong") as stranger:  # noqa: S106
    refused = recall_by_url.sync(client=stranger, query="tea")
    assert isinstance(refused, Error), refused
    assert refused.error.code.value == "unauthorized"
print("all calls were answered as described")
