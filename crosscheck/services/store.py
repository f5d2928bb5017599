"""An S3 store as the journeys see it: an endpoint, keys, one bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BUCKET = "lake"
REGION = "eu-central-1"


@dataclass(frozen=True, slots=True)
class Store:
    """One S3 endpoint; `properties` name it as a catalog does."""

    endpoint: str
    access_key: str
    secret_key: str

    @property
    def properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.path-style-access": "true",
            "client.region": REGION,
        }

    def client(self) -> Any:
        """A client that shares no code with relayout's own."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=REGION,
        )

    def with_bucket(self) -> Store:
        """The same store, now with the bucket."""
        self.client().create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        return self
